"""Tables, figures and pages: what `analysis` has computed, as Markdown, CSV, LaTeX, HTML and SVG."""
