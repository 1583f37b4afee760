"""Charts as SVG: panels below each other, with a logarithmic y axis."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 64, 190, 34, 42
DASHED = ' stroke-dasharray="5 4"'
STYLE = ("text { font: 11px sans-serif; fill: #222 } .title { font-size: 13px; font-weight: bold } .end { text-anchor: end } "
         ".middle { text-anchor: middle } .name { font-size: 9px; fill: #555 } .grid { stroke: #ddd } "
         ".front { fill: none; stroke-width: 1.6; stroke-opacity: .6 }")


class Panel:
    """The frame of a chart. `ticks`: the labels of x by position, in ascending order; `powers`: the first and last power of ten of y."""

    def __init__(self, title, index, ticks, x_label, powers, y_label="1e{}".format):
        self.title, self.top, self.ticks, self.x_label, self.y_label = title, index * HEIGHT, ticks, x_label, y_label
        self.x0, self.x1 = min(ticks), max(ticks)
        self.y0, self.y1 = powers

    def x(self, value):
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, power):
        """The position of ten to the power of `power`."""
        share = (power - self.y0) / (self.y1 - self.y0)
        return self.top + HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def frame(self):
        """Title and axes, as lines of SVG."""
        yield f'<text x="{LEFT}" y="{self.top + 18}" class="title">{escape(self.title)}</text>'
        for power in range(self.y0, self.y1 + 1):
            y = self.y(power)
            yield (f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="end">{self.y_label(power)}</text>')
        for value, label in self.ticks.items():
            x = self.x(value)
            yield (f'<line x1="{x:.1f}" y1="{self.top + TOP}" x2="{x:.1f}" y2="{self.top + HEIGHT - BOTTOM}" class="grid"/>'
                   f'<text x="{x:.1f}" y="{self.top + HEIGHT - BOTTOM + 15}" class="middle">{label}</text>')
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{self.top + HEIGHT - 10}" class="middle">{self.x_label}</text>'

    def legend_place(self, index):
        """Where the symbol of a line of the legend is; its text is 12 to the right."""
        return WIDTH - RIGHT + 20, self.top + TOP + 10 + 18 * index


def legend_text(place, text):
    return f'<text x="{place[0] + 12}" y="{place[1] + 4}">{escape(text)}</text>'


def polyline(points, color, dashed=False):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" stroke="{color}" class="front"{DASHED if dashed else ""}/>'


def mark(x, y, color, filled=True, square=False):
    style = f'stroke="{color}" stroke-width="1.6" fill="{color if filled else "white"}" fill-opacity="{0.75 if filled else 0.4}"'
    if square:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" {style}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {style}/>'


def document(panels):
    """A picture of panels, each as text."""
    height = max(1, len(panels)) * HEIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
            f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(panels) + "\n</svg>\n")
