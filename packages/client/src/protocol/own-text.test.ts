import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { decodeAny } from './decode-client.js'
import { ownText } from './own-text.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const COUNT = 1_000

/** Bytes of heap that each result of `make` keeps: the least of three measurements, because the test runner allocates too. */
function keptBytes(make: (index: number) => unknown): number {
  return Math.min(measure(make), measure(make), measure(make))
}

function measure(make: (index: number) => unknown): number {
  const kept = new Array<unknown>(COUNT)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < COUNT; index++) kept[index] = make(index)
  collectGarbage()
  const bytes = (process.memoryUsage().heapUsed - before) / COUNT
  expect(kept).toHaveLength(COUNT)
  return bytes
}

it('keeps nothing of the text that it is a part of', () => {
  const make = (index: number) => ownText(`${index} `.padEnd(2_000, '€').slice(0, 20))
  expect(keptBytes(make)).toBeLessThan(200)
})

// A node kept 2 to 4 kB for every key, pattern and id of a client that pads its headers: in dedupe windows, routes, the
// log and presence. The decoder gave parts of the header, and V8 keeps the whole string for a part of it.
it.each([
  ['id of a request', 'unlisten PART-0123456789abcdef a', 'id'],
  ['pattern of a listen', 'listen 1 PART.a-longer-word.#', 'pattern'],
  ['key of a publish', 'publish 1 PART.a-longer-word', 'key'],
  ['message id of a publish', 'publish 1 a id=PART-0123456789abcdef', 'messageId'],
  ['name of a member', 'presence 1 a op=enter member=PART-0123456789abcdef', 'member'],
  ['position of a listen', 'listen 1 a since=abcdefgh-PART:0', 'since'],
])('the %s does not keep its header', (_, header, field) => {
  const make = (index: number) => {
    const padding = ` x=${'-'.repeat(1_900)}`
    const message = decodeAny(Buffer.from(`${header.replace('PART', `part${index}`)}${padding}\n`))
    return message[field as keyof typeof message]
  }
  expect(keptBytes(make)).toBeLessThan(200)
})
