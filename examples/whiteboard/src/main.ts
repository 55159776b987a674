import { setup } from 'webmq-client'
import { YjsProvider } from 'webmq-client/yjs'
import * as Y from 'yjs'
import { type Cursor, canvas, draw, drawCursors, randomColor, type Segment } from './board'

const client = setup({ url: '/ws' })
const doc = new Y.Doc()
const segments = doc.getArray<Segment>('segments')
const { awareness } = new YjsProvider(doc, 'board.1')
const color = randomColor()

segments.observe(() => draw(segments.toArray()))

awareness.on('change', () => {
  const others = [...awareness.getStates()].filter(([id]) => id !== doc.clientID)
  drawCursors(others.flatMap(([, { cursor }]) => (cursor ? [cursor as Cursor] : [])))
})

canvas.addEventListener('pointermove', ({ buttons, offsetX: x, offsetY: y, movementX, movementY }) => {
  awareness.setLocalStateField('cursor', { at: [x, y], color } satisfies Cursor)
  if (buttons === 1) segments.push([{ from: [x - movementX, y - movementY], to: [x, y], color }])
})

document.querySelector('#clear')?.addEventListener('click', () => segments.delete(0, segments.length))

client.on('status', ({ state }) => {
  document.querySelector('#state')?.replaceChildren(state)
})
