const POINTS = 120

/** Plots the last values, newest on the right. */
export class Plot {
  #canvas
  #values = new Array(POINTS).fill(0)

  constructor(canvas) {
    this.#canvas = canvas
    new ResizeObserver(() => this.#draw()).observe(canvas)
  }

  add(value) {
    this.#values.shift()
    this.#values.push(value)
    this.#canvas.dataset.latest = String(value)
    this.#draw()
  }

  #draw() {
    const canvas = this.#canvas
    const { clientWidth: width, clientHeight: height } = canvas
    canvas.width = width * devicePixelRatio
    canvas.height = height * devicePixelRatio
    const context = canvas.getContext('2d')
    context.scale(devicePixelRatio, devicePixelRatio)
    const top = Math.max(4, ...this.#values)
    context.beginPath()
    for (const [index, value] of this.#values.entries()) {
      context.lineTo((index / (POINTS - 1)) * width, height - 2 - (value / top) * (height - 14))
    }
    context.strokeStyle = getComputedStyle(canvas).color
    context.lineWidth = 1.5
    context.stroke()
    context.fillStyle = context.strokeStyle
    context.fillText(Math.round(top).toLocaleString('en'), 2, 10)
  }
}
