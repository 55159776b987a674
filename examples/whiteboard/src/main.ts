import { setup } from 'webmq-client'

type Stroke = readonly [x: number, y: number, toX: number, toY: number]

const client = setup<{ 'board.*': Stroke }>({ url: '/ws' })
const canvas = document.querySelector('canvas') as HTMLCanvasElement
const context = canvas.getContext('2d') as CanvasRenderingContext2D

client.listen('board.1', ([x, y, toX, toY]) => {
  context.beginPath()
  context.moveTo(x, y)
  context.lineTo(toX, toY)
  context.stroke()
  canvas.dataset.strokes = String(Number(canvas.dataset.strokes ?? 0) + 1)
})

canvas.addEventListener('pointermove', ({ buttons, offsetX, offsetY, movementX, movementY }) => {
  if (buttons === 1) void client.publish('board.1', [offsetX - movementX, offsetY - movementY, offsetX, offsetY])
})
