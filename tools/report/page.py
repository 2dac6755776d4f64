"""The HTML page: one file, pictures inside, nothing fetched from anywhere."""

import base64
import html
import io
import re

from settings import slug_of

# In every page that page_html() made, and in no other.
MARK = '<meta name="generator" content="sp3 report">'

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #111; background: #fff;
       max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 3rem; border-bottom: 2px solid #111; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { max-width: 48rem; color: #333; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px;
        font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border-bottom: 1px solid #ccc; padding: .2rem .6rem; text-align: right; }
th { border-bottom: 2px solid #111; }
th:first-child, td:first-child, .second { text-align: left; }
.wide { overflow-x: auto; }
.note { color: #333; font-size: 13px; max-width: 48rem; }
nav ul { columns: 2; }
@media print { body { margin: 0; max-width: none; } }
"""


def escape(text):
    """Bytes of a command line that are no text become question marks."""
    return html.escape(str(text).encode("utf-8", "replace").decode("utf-8"), quote=True)


def png_bytes(plot):
    buffer = io.BytesIO()
    plot.savefig(buffer, format="png")
    return buffer.getvalue()


def table_html(table):
    out = [f'<div class="wide"><table><caption>{escape(table.title)}</caption><thead><tr>']
    out += [f"<th>{escape(cell)}</th>" for cell in table.head]
    out.append("</tr></thead><tbody>")
    for row in table.rows:
        out.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    out.append("</tbody></table></div>")
    if table.note:
        out.append(f'<p class="note">{escape(table.note)}</p>')
    return "".join(out)


def figure_html(figure, png):
    picture = base64.b64encode(png).decode("ascii")
    caption = " ".join(escape(sentence) for sentence in figure.caption)
    return (
        f'<figure id="{escape(figure.slug)}"><h3>{escape(figure.title)}</h3>'
        f'<img alt="{escape(figure.title)}" src="data:image/png;base64,{picture}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def slugs_in(html_of_page):
    """Of the figures of a page that page_html() made; None if it did not make it."""
    if MARK not in html_of_page:
        return None
    found = re.findall(r'<figure id="([^"]+)">', html_of_page)
    return [slug for slug in found if slug == slug_of(slug)]


def page_html(title, introduction, sections):
    """`sections`: (title, [html]) in order."""
    out = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        MARK,
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>",
        f"<body><h1>{escape(title)}</h1>",
    ]
    out += [f"<p>{escape(sentence)}</p>" for sentence in introduction]
    out.append("<nav><ul>")
    out += [f'<li><a href="#s{i}">{escape(name)}</a></li>' for i, (name, _) in enumerate(sections)]
    out.append("</ul></nav>")
    for i, (name, parts) in enumerate(sections):
        out.append(f'<section><h2 id="s{i}">{escape(name)}</h2>')
        out += parts
        out.append("</section>")
    out.append("</body></html>\n")
    return "\n".join(out)
