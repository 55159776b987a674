import { setup } from 'webmq-client'
import { YjsProvider } from 'webmq-client/yjs'
import * as Y from 'yjs'
import { type Cursor, canvas, draw, drawCursors, type Point, pointOf, randomColor, type Segment } from './board'

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

let last: Point | undefined
canvas.addEventListener('pointermove', (event) => {
  const at = pointOf(event)
  awareness.setLocalStateField('cursor', { at, color } satisfies Cursor)
  if (event.buttons === 1 && last !== undefined) segments.push([{ from: last, to: at, color }])
  last = at
})
for (const type of ['pointerdown', 'pointerenter'] as const) {
  canvas.addEventListener(type, (event) => {
    last = pointOf(event)
  })
}

document.querySelector('#clear')?.addEventListener('click', () => segments.delete(0, segments.length))

client.on('status', ({ state }) => {
  document.querySelector('#state')?.replaceChildren(state)
})
