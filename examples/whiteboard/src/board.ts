/** A line from one point to another. */
export interface Segment {
  readonly from: Point
  readonly to: Point
  readonly color: string
}

export type Point = readonly [x: number, y: number]

/** Where somebody points. */
export interface Cursor {
  readonly at: Point
  readonly color: string
}

export const canvas = document.querySelector('canvas') as HTMLCanvasElement
const context = canvas.getContext('2d') as CanvasRenderingContext2D

let frame = 0

/** Draws all segments, in the next frame. */
export function draw(segments: readonly Segment[]): void {
  cancelAnimationFrame(frame)
  frame = requestAnimationFrame(() => {
    context.clearRect(0, 0, canvas.width, canvas.height)
    for (const segment of segments) drawSegment(segment)
    canvas.dataset.segments = String(segments.length)
  })
}

function drawSegment({ from, to, color }: Segment): void {
  context.strokeStyle = color
  context.lineWidth = 3
  context.lineCap = 'round'
  context.beginPath()
  context.moveTo(...from)
  context.lineTo(...to)
  context.stroke()
}

export function drawCursors(cursors: readonly Cursor[]): void {
  const dots = cursors.map(({ at: [x, y], color }) => {
    const dot = document.createElement('div')
    dot.className = 'cursor'
    dot.style.cssText = `left: ${(100 * x) / canvas.width}%; top: ${(100 * y) / canvas.height}%; background: ${color}`
    return dot
  })
  // The canvas stays where it is: one that is put back gets a `pointerenter`, in the middle of a line.
  for (const old of document.querySelectorAll('.cursor')) old.remove()
  canvas.after(...dots)
}

/** Where on the canvas a pointer is; on a narrow page the canvas is drawn smaller than it is. */
export function pointOf({ offsetX, offsetY }: PointerEvent): Point {
  const scale = canvas.width / canvas.clientWidth
  return [offsetX * scale, offsetY * scale]
}

/** A colour for this page. */
export function randomColor(): string {
  return `hsl(${Math.floor(Math.random() * 360)} 80% 40%)`
}
