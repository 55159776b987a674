const SECONDS = 60

/** Plots how many messages arrived in each of the last 60 seconds. */
export function createRatePlot(canvas, label) {
  const counts = new Array(SECONDS).fill(0)
  let current = 0

  setInterval(() => {
    counts.shift()
    counts.push(current)
    label.textContent = current.toLocaleString('en')
    current = 0
    draw(canvas, counts)
  }, 1000)
  new ResizeObserver(() => draw(canvas, counts)).observe(canvas)

  return {
    count() {
      current++
    },
  }
}

function draw(canvas, counts) {
  const { clientWidth: width, clientHeight: height } = canvas
  const scale = devicePixelRatio
  canvas.width = width * scale
  canvas.height = height * scale
  const context = canvas.getContext('2d')
  context.scale(scale, scale)
  const top = Math.max(4, ...counts)
  const x = (i) => (i / (SECONDS - 1)) * width
  const y = (count) => height - 2 - (count / top) * (height - 12)
  const color = getComputedStyle(canvas).color

  context.beginPath()
  context.moveTo(0, height)
  for (const [i, count] of counts.entries()) context.lineTo(x(i), y(count))
  context.lineTo(width, height)
  context.globalAlpha = 0.18
  context.fillStyle = color
  context.fill()

  context.beginPath()
  // On an empty path, lineTo moves.
  for (const [i, count] of counts.entries()) context.lineTo(x(i), y(count))
  context.globalAlpha = 1
  context.strokeStyle = color
  context.lineWidth = 1.5
  context.stroke()
}
