import { element, short } from './elements.js'

const SVG = 'http://www.w3.org/2000/svg'
/** Room for the scale at the left, for times below, and for half a line of text above, in px. */
const [LEFT, BELOW, ABOVE] = [44, 18, 8]
const MIN_SPAN_MS = 60_000
/** A line is interrupted where nobody has looked for so long. */
const MAX_STEP_MS = 10_000
const TIME_STEPS_MS = [15, 30, 60, 120, 300, 600].map((seconds) => seconds * 1_000)
const MIN_TICK_PX = 76
/** More values than this do not stand beside a title. */
const MAX_READOUTS = 3

/** Plots values over time, with a scale of both. */
export class Plot {
  #figure = document.createElement('figure')
  #svg = shape('svg', { role: 'img' })
  #readout = document.createElement('span')
  #title
  #least
  #lines = []
  #cursorMs

  /** @param onCursor Gets the time that is pointed at, or `undefined`. */
  constructor({ id, title, unit, least = 1 }, onCursor) {
    this.#title = `${title}, ${unit}`
    this.#least = least
    this.#figure.id = id
    const caption = document.createElement('figcaption')
    this.#readout.className = 'readout'
    caption.append(element('b', title), element('small', unit), this.#readout)
    this.#figure.append(caption, this.#svg)
    this.#svg.onpointermove = ({ offsetX }) => onCursor(this.#timeAt(offsetX))
    this.#svg.onpointerleave = () => onCursor(undefined)
    new ResizeObserver(() => this.#draw()).observe(this.#svg)
  }

  get element() {
    return this.#figure
  }

  /**
   * @param lines `{ name, isNamed, className, points: [ms, value | undefined][] }`; the newest point last. `isNamed`: the
   *   name stands beside the value, as no legend has it.
   */
  show(lines) {
    this.#lines = lines
    this.#draw()
  }

  set cursorMs(ms) {
    this.#cursorMs = ms
    this.#draw()
  }

  get #times() {
    const points = this.#lines.flatMap(({ points }) => points)
    const toMs = points.reduce((latest, [ms]) => Math.max(latest, ms), 0)
    const fromMs = points.reduce((first, [ms]) => Math.min(first, ms), toMs)
    return { fromMs: Math.min(fromMs, toMs - MIN_SPAN_MS), toMs }
  }

  #timeAt(x) {
    const { fromMs, toMs } = this.#times
    const share = Math.max(0, x - LEFT) / (this.#svg.clientWidth - LEFT)
    return fromMs + share * (toMs - fromMs)
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#svg
    if (width === 0 || this.#lines.length === 0) return
    const { fromMs, toMs } = this.#times
    const values = this.#lines.flatMap(({ points }) => points.map(([, value]) => value ?? 0))
    const top = niceAbove(values.reduce((most, value) => Math.max(most, value), this.#least))
    const x = (ms) => LEFT + ((ms - fromMs) / (toMs - fromMs)) * (width - LEFT)
    const y = (value) => ABOVE + (1 - value / top) * (height - ABOVE - BELOW)
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
    this.#svg.replaceChildren(
      ...[0, 0.5, 1].flatMap((share) => scaleLine(short(share * top), y(share * top), width)),
      ...timesBetween(fromMs, toMs, width - LEFT).map(({ ms, text }) => label(text, x(ms), height - 3)),
      ...this.#lines.flatMap(({ className, points }) => drawn(piecesOf(points), className, x, y, this.#lines.length)),
      ...(this.#cursorMs === undefined ? [] : [cursorAt(x(this.#cursorMs), y(0))]),
    )
    this.#tell(top)
  }

  /** The values at the cursor, or the newest. */
  #tell(top) {
    const shown = this.#lines.map(({ name, isNamed, className, points }) => ({
      name,
      isNamed,
      className,
      text: textOf(pointAt(points, this.#cursorMs)?.[1]),
    }))
    this.#figure.dataset.latest = shown.map(({ text }) => text).join(' ')
    const readouts = shown.length > MAX_READOUTS ? [] : shown
    this.#readout.replaceChildren(
      ...readouts.map(({ name, isNamed, text, className }) =>
        element('span', isNamed ? `${name} ${text}` : text, `swatch ${className}`),
      ),
    )
    const told = shown.map(({ name, text }) => `${name} ${text}`).join(', ')
    this.#svg.setAttribute('aria-label', `${this.#title}: ${told}. The scale ends at ${short(top)}.`)
  }
}

const textOf = (value) => (value === undefined ? '–' : short(value))

function pointAt(points, ms) {
  if (ms === undefined) return points.at(-1)
  return points.reduce((best, point) => (Math.abs(point[0] - ms) < Math.abs(best[0] - ms) ? point : best), points[0])
}

/** Parts of a line without holes. */
function piecesOf(points) {
  const pieces = []
  let lastMs = Number.NEGATIVE_INFINITY
  for (const [ms, value] of points) {
    if (value === undefined) continue
    if (ms - lastMs > MAX_STEP_MS) pieces.push([])
    pieces.at(-1).push([ms, value])
    lastMs = ms
  }
  return pieces
}

function drawn(pieces, className, x, y, lineCount) {
  return pieces.flatMap((points) => {
    const path = points.map(([ms, value]) => `${x(ms).toFixed(1)} ${y(value).toFixed(1)}`).join('L')
    const [first, last] = [x(points[0][0]), x(points.at(-1)[0])]
    const area = shape('path', { class: `area ${className}`, d: `M${first} ${y(0)}L${path}L${last} ${y(0)}Z` })
    const line = shape('path', { class: `line ${className}`, d: `M${path}${points.length === 1 ? 'h1' : ''}` })
    return lineCount > 1 ? [line] : [area, line]
  })
}

function scaleLine(text, y, width) {
  return [shape('line', { class: 'grid', x1: LEFT, x2: width, y1: y, y2: y }), label(text, LEFT - 6, y + 4, 'end')]
}

function cursorAt(x, bottom) {
  return shape('line', { class: 'cursor', x1: x, x2: x, y1: ABOVE, y2: bottom })
}

/** Times of the clock, as many as there is room for. */
function timesBetween(fromMs, toMs, width) {
  const most = Math.max(1, Math.floor(width / MIN_TICK_PX))
  const stepMs = TIME_STEPS_MS.find((step) => (toMs - fromMs) / step <= most) ?? TIME_STEPS_MS.at(-1)
  const ticks = []
  for (let ms = Math.ceil(fromMs / stepMs) * stepMs; ms <= toMs; ms += stepMs) {
    ticks.push({
      ms,
      text: new Date(ms).toLocaleTimeString('en-GB', { timeStyle: stepMs < 60_000 ? 'medium' : 'short' }),
    })
  }
  // The text of the last one would be cut.
  return ticks.filter(({ ms }) => ((ms - fromMs) / (toMs - fromMs)) * width < width - MIN_TICK_PX / 3)
}

/** The next number whose half is round, too. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  return power * ([1, 2, 4, 6, 8].find((digit) => digit * power >= value) ?? 10)
}

function label(text, x, y, anchor = 'middle') {
  const made = shape('text', { x, y, 'text-anchor': anchor })
  made.textContent = text
  return made
}

function shape(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  return made
}
