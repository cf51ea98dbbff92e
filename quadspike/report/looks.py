"""How the page looks: colours of runs, and its one style sheet."""

from __future__ import annotations

from quadspike.report.markup import Html, tag

_COLOURS = 6

# Each a path around (0, 0), drawn at a line's end and beside a name, so that runs differ
# in more than colour.
_MARKERS = (
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
    "M-3 -3H3V3H-3z",
    "M0 -4.2L3.9 2.9H-3.9z",
    "M0 -4.4L4.4 0L0 4.4L-4.4 0z",
    "M0 4.2L3.9 -2.9H-3.9z",
    "M-3.4 -1.3H-1.3V-3.4H1.3V-1.3H3.4V1.3H1.3V3.4H-1.3V1.3H-3.4z",
)


def colour(run: int) -> str:
    """The colour of the run-th run, another one in the dark."""
    return f"var(--run{run % _COLOURS})"


def marker(run: int, x: float, y: float) -> Html:
    """The run's mark, with its middle at (x, y)."""
    shape = _MARKERS[(run + run // _COLOURS) % len(_MARKERS)]
    return tag("path", d=shape, fill=colour(run), transform=f"translate({x:.1f} {y:.1f})")


def badge(run: int) -> Html:
    """The run's mark among words."""
    drawn = marker(run, 6, 6)
    return tag("svg", drawn, class_="badge", viewBox="0 0 12 12", aria_hidden="true")


def depth(share: float) -> str:
    """From blue at the first layer (0) to orange at the last (1); seen on white and on black."""
    first, last = (47, 127, 193), (217, 112, 10)
    mixed = (round(a + share * (b - a)) for a, b in zip(first, last, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


# Covers that move with a box's content hide the shadows at its edges where it ends: a shadow is
# seen where there is more to scroll to. White paper would hide it everywhere, and is multiplied.
CSS = """
:root{color-scheme:light dark;--page:#f6f6f3;--card:#fff;--ink:#1a1a1a;--soft:#575c63;
--line:#d9dad6;--grid:#e6e7e3;--link:#0b5c96;--mark:#fff3d1;--warn:#8a4b00;--warnbg:#fff4e0;
--run0:#0b5c96;--run1:#c44e00;--run2:#0f7f5f;--run3:#8a3f8f;--run4:#7a6400;--run5:#555;
--under:var(--card)}
@media screen and (prefers-color-scheme:dark){:root{--page:#121519;--card:#1b1f25;--ink:#e9e9e6;
--soft:#a8afb8;--line:#363c45;--grid:#2a3038;--link:#7cbcf0;--mark:#44391a;--warn:#ffc67a;
--warnbg:#2f2516;--run0:#6db3e8;--run1:#ff9a5c;--run2:#4fd0a5;--run3:#d798dc;--run4:#dcc04a;
--run5:#c4c4c4}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
overflow-wrap:anywhere;print-color-adjust:exact;-webkit-print-color-adjust:exact}
header,main,footer{max-width:1120px;margin:0 auto;padding:0 1rem}
header{padding-top:2rem}
.kicker{margin:0;color:var(--soft);font-size:.8rem;letter-spacing:.08em;text-transform:uppercase}
h1{margin:.1rem 0 1rem;font-size:clamp(1.5rem,4vw,2.2rem);line-height:1.2;font-weight:650}
h2{display:inline;font-size:1.15rem;margin:0;font-weight:650}
h3{font-size:1rem;margin:1.4rem 0 .4rem;font-weight:600}
p{margin:.3rem 0 .8rem;max-width:72ch}
a{color:var(--link)}
.soft,figcaption,.stat dt{color:var(--soft)}
.card,details{background:var(--card);border:1px solid var(--line);border-radius:10px}
.card{padding:1rem 1.2rem;margin:0 0 .8rem;border-left:5px solid var(--run);
display:flex;flex-wrap:wrap;gap:.6rem 2rem;align-items:center;justify-content:space-between}
.who{flex:1 1 15rem;min-width:0}.who strong{font-size:1.1rem}.who p{margin:0;font-size:.9rem}
.stat{display:flex;flex-wrap:wrap;gap:.5rem 1.8rem;margin:0}
.stat dt{font-size:.78rem}.stat dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
.stat small{display:block;font-weight:400;color:var(--soft);font-size:.78rem}
.stat .first dd{font-size:1.7rem;line-height:1.15}
.warnings{background:var(--warnbg);border:1px solid var(--warn);border-radius:10px;
padding:.7rem 1.2rem;margin:0 0 .8rem}
.warnings h2{color:var(--warn);font-size:1rem}.warnings ul{margin:.3rem 0 .2rem;padding-left:1.2rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:.4rem 0 1rem;padding:0;
font-size:.9rem}
details{margin:0 0 .8rem;padding:0 1.2rem}
summary{cursor:pointer;padding:.8rem 0}
summary:focus-visible,a:focus-visible,.scroll:focus-visible{outline:2px solid var(--link);
outline-offset:2px}
.body{padding-bottom:1rem;scroll-margin-top:4rem}
.badge{width:.85em;height:.85em;margin-right:.35em;vertical-align:-.05em;overflow:visible}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:.2rem 0 .6rem;
padding:0;font-size:.88rem}
.legend svg.key{width:2em;height:.9em;margin-right:.4em;vertical-align:-.1em}
.ramp{display:inline-block;width:6em;height:.7em;border-radius:3px;margin:0 .5em}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));
gap:1rem 1.8rem}
.minis{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(46%,165px),1fr));
gap:.9rem .9rem}
figure{margin:0;min-width:0}figure svg{display:block;width:100%;height:auto}
.grid figure{max-width:530px;align-self:end}.small figure{max-width:420px}
figcaption{font-size:.85rem;margin-bottom:.25rem}figcaption b{color:var(--ink)}
.minis figcaption{font-size:.75rem;line-height:1.35;margin:0}.minis b{display:block}
.paper{--under:#fff;border-radius:8px;padding:.5rem}
.paper svg{min-width:600px;mix-blend-mode:multiply}
.plates figure{max-width:760px;margin-bottom:1.2rem}
svg text{fill:var(--soft);font-size:11px;font-variant-numeric:tabular-nums}
svg .name{fill:var(--ink)}svg .tiny{font-size:9.5px}
.gridline{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.curve{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.curve.thin{stroke-width:1.2}.curve.thin:hover{stroke-width:3.2}
.curve.faint{stroke-width:1;stroke-opacity:.45}.curve.dot{stroke-width:5}
.band{fill:var(--ink);fill-opacity:0}.band:hover{fill-opacity:.08}
.inside{fill:var(--ink);fill-opacity:.09}.threshold{stroke:var(--ink);stroke-width:1.2;
stroke-dasharray:2 2}
.scroll{overflow-x:auto;max-width:100%;container-type:inline-size;
background:linear-gradient(90deg,var(--under) 40%,transparent) 0/3rem 100% no-repeat local,
linear-gradient(-90deg,var(--under) 40%,transparent) 100%/3rem 100% no-repeat local,
linear-gradient(90deg,#8887,transparent) 0/1rem calc(100% - 2px) no-repeat,
linear-gradient(-90deg,#8887,transparent) 100%/1rem calc(100% - 2px) no-repeat var(--under)}
.scroll+.scroll{margin-top:1.4rem}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;
overflow-wrap:normal}
caption{text-align:left;color:var(--soft);font-size:.85rem;padding-bottom:.3rem;
max-width:100cqw}
th,td{padding:.32rem .9rem .32rem 0;text-align:left;border-bottom:1px solid var(--line);
vertical-align:top}
thead th{font-size:.8rem;color:var(--soft);font-weight:600;vertical-align:bottom}
tbody th{font-weight:500;min-width:7.5rem}
td.number,th.number{text-align:right}td.number{white-space:nowrap}
td.best{font-weight:700}
td.best::before{content:"★\u00a0";font-size:.7em;vertical-align:.15em}
mark{background:var(--mark);color:inherit;font-weight:650;padding:.05em .3em;border-radius:4px}
code{font-size:.85em}
footer{color:var(--soft);font-size:.85rem;padding-bottom:2rem}
@media (max-width:480px){details,.card,.warnings{padding-left:.8rem;padding-right:.8rem}
.stat{gap:.5rem 1.2rem}}
@media print{
:root{color-scheme:light;--page:#fff}
@page{margin:14mm}
body{font-size:10.5pt}header,main,footer{max-width:none;padding:0}header{padding-top:0}
nav{display:none}details{border:0;border-top:1px solid var(--line);border-radius:0;padding:0}
details::details-content{content-visibility:visible;display:block;height:auto}
summary{list-style:none;break-after:avoid}summary::-webkit-details-marker{display:none}
h2,h3,h3+p,.legend,caption{break-after:avoid}
figure,.card,.warnings,.scroll,tr,footer{break-inside:avoid}td.number{white-space:normal}
.plates figure{max-width:150mm}.paper svg{min-width:0;mix-blend-mode:normal}
.grid{grid-template-columns:1fr 1fr}.minis{grid-template-columns:repeat(5,1fr)}
.scroll{overflow:visible;background:none}table{font-size:8pt}th,td{padding:.14rem .6rem .14rem 0}
thead{display:table-header-group}
}
"""
