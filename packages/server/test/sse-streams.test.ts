import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { eventually } from 'webmq-conformance'
import { createServer, type ServerOptions } from '../src/index.js'
import { SECRET, tokenOf } from './api-server.js'
import { type ReadEvent, SseReader } from './sse-reader.js'

const KEY = 'answer.7'
const QUERY = `stream=${KEY}`

async function start(options: ServerOptions = {}) {
  const server = createServer({ port: 0, logLevel: 'silent', history: ['answer.#=100000'], ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const { port } = await server.start()
  return { server, port }
}

/** What a reader has, as a page puts it together. */
function shownOf(events: readonly ReadEvent[], before = '') {
  let text = before
  let status: unknown
  for (const { name, data } of events) {
    if (name === 'whole') [text, status] = [data.text, data.status]
    if (name === 'append') text += data.text
    if (name === 'end') status = data.status
  }
  return { text, status }
}

const textOf = (reader: SseReader, before = '') => shownOf(reader.events, before).text

async function ended(reader: SseReader): Promise<void> {
  await eventually(() => {
    if (!reader.client.isEnded) throw new Error('the response has not ended')
  })
}

describe.each(['native', 'ws'] as const)('an event stream that follows a stream, on the %s transport', (transport) => {
  it('brings the whole, what is appended, and the end, and ends with it', async () => {
    const { server, port } = await start({ transport })
    const stream = await server.stream(KEY, { meta: { of: 'm' } })
    await stream.append('Once ')
    const readers = [new SseReader(port, QUERY), new SseReader(port, QUERY)] as const
    await Promise.all(readers.map((reader) => reader.next('whole')))
    await stream.append('upon \u{1f642}\n')
    await eventually(() =>
      expect(readers.map((reader) => textOf(reader))).toEqual(Array(2).fill('Once upon \u{1f642}\n')),
    )
    await stream.append('a time')
    await stream.end({ words: 4 })
    for (const reader of readers) {
      await ended(reader)
      const [welcome, whole, ...later] = reader.events
      expect(welcome?.name).toBe('welcome')
      expect(whole).toMatchObject({ name: 'whole', id: `${stream.id}:1:5`, data: { meta: { of: 'm' }, text: 'Once ' } })
      expect(later.at(-1)).toMatchObject({ name: 'end', data: { status: 'end', result: { words: 4 } } })
      expect(shownOf(reader.events)).toEqual({ text: 'Once upon \u{1f642}\na time', status: 'end' })
    }
    const late = new SseReader(port, QUERY)
    await ended(late)
    expect(late.events.map(({ name }) => name)).toEqual(['welcome', 'whole', 'end'])
    expect(shownOf(late.events)).toEqual({ text: 'Once upon \u{1f642}\na time', status: 'end' })
    await vi.waitFor(() => expect(server.stats().streams).toMatchObject({ activeCount: 0, keptBytes: 0 }), 5_000)
  })

  it('goes on behind `Last-Event-ID`, and is refused once its reader has the end', async () => {
    const { server, port } = await start({ transport })
    const stream = await server.stream(KEY)
    await stream.append('Once ')
    const first = new SseReader(port, QUERY)
    await first.next('whole')
    const { lastEventId = '' } = first
    const again = () => new SseReader(port, QUERY, { 'last-event-id': lastEventId })
    const idle = again()
    first.client.destroy()
    await stream.append('upon ')
    await eventually(() => expect(textOf(idle, 'Once ')).toBe('Once upon '))
    const behind = again()
    await eventually(() => expect(textOf(behind, 'Once ')).toBe('Once upon '))
    await stream.append('a time')
    await stream.end()
    for (const reader of [idle, behind, again()]) {
      await ended(reader)
      expect(reader.named('whole')).toEqual([])
      expect(shownOf(reader.events, 'Once ')).toEqual({ text: 'Once upon a time', status: 'end' })
    }
    const { lastEventId: end = '' } = behind
    const refused = await new SseReader(port, QUERY, { 'last-event-id': end }).refusal()
    expect([refused.status, refused.code]).toEqual([409, 'E_STREAM_ENDED'])
    // Of another stream: all of it.
    const next = await server.stream(KEY)
    await next.append('There was')
    const moved = again()
    expect((await moved.next('whole')).data).toMatchObject({ stream: next.id, text: 'There was' })
  })

  it('waits for a stream, and brings bytes', async () => {
    const { server, port } = await start({ transport })
    const reader = new SseReader(port, QUERY)
    expect((await reader.next('whole')).data).toMatchObject({ status: 'none', text: '' })
    const stream = await server.stream(KEY)
    await eventually(() => expect(reader.named('whole')[1]?.data).toMatchObject({ stream: stream.id, text: '' }))
    await stream.append(Uint8Array.of(0, 255))
    await stream.append(Uint8Array.of(10))
    await stream.fail(new Error('secret'))
    await ended(reader)
    const bytes = reader.named('append').map(({ data }) => Buffer.from(data.base64, 'base64'))
    expect(Buffer.concat(bytes)).toEqual(Buffer.of(0, 255, 10))
    expect(reader.named('end')[0]?.data).toMatchObject({ status: 'fail', result: { message: 'the writer has failed' } })
  })

  it('loses and doubles nothing of a fast writer, while readers come and come back', async () => {
    const { server, port } = await start({ transport })
    const stream = await server.stream(KEY)
    let text = ''
    const write = async () => {
      for (let index = 0; index < 2_000; index++) {
        const piece = `${index}\u{1f642} `
        text += piece
        const appended = stream.append(piece)
        if (index % 7 === 0) await appended
      }
      await stream.end()
    }
    const read = async (count: number) => {
      let shown = ''
      let lastEventId = ''
      for (;;) {
        const reader = new SseReader(port, QUERY, lastEventId === '' ? {} : { 'last-event-id': lastEventId })
        await eventually(() => {
          if (!reader.client.isEnded && reader.named('append').length < count) throw new Error('too few')
        })
        const { events, lastEventId: id = lastEventId } = reader
        reader.client.destroy()
        const { text, status } = shownOf(events, shown)
        shown = text
        lastEventId = id
        if (status !== undefined && status !== 'active') return text
      }
    }
    const [, ...shown] = await Promise.all([write(), ...[1, 2, 5, 20, 20, 10_000].map(read)])
    expect(shown.map((one) => one === text)).toEqual(Array(6).fill(true))
  })
})

it('an event stream of a stream is refused for what it is', async () => {
  const { port } = await start({ jwt: { secret: SECRET } })
  const authorization = `Bearer ${await tokenOf('ann', ['answer.mine', 'other'])}`
  const codes = []
  for (const query of [
    'stream=answer.7',
    'stream=a b',
    'stream=answer.*',
    'stream=other',
    'stream=answer.mine&listen=a',
    'stream=$x',
  ]) {
    const { status, code } = await new SseReader(port, encodeURI(query), { authorization }).refusal()
    codes.push(`${status} ${code}`)
  }
  expect(codes).toEqual([
    '403 E_FORBIDDEN',
    '400 E_KEY_INVALID',
    '400 E_KEY_INVALID',
    '501 E_UNSUPPORTED',
    '400 E_MESSAGE_INVALID',
    '403 E_FORBIDDEN',
  ])
})

it('a reader goes on behind what the log has dropped, and begins anew when nothing is left', async () => {
  const { server, port } = await start({ historyMaxMessages: 20 })
  const stream = await server.stream(KEY)
  await stream.append('first ')
  const first = new SseReader(port, QUERY)
  await first.next('whole')
  const { lastEventId = '' } = first
  const again = () => new SseReader(port, QUERY, { 'last-event-id': lastEventId })
  for (let index = 0; index < 40; index++) await stream.append(`${index} `)
  await stream.end()
  const rest = Array.from({ length: 40 }, (_, index) => `${index} `).join('')
  for (const reader of [first, again()]) {
    await ended(reader)
    expect(textOf(reader, 'first ')).toBe(`first ${rest}`)
  }
  for (let index = 0; index < 40; index++) await server.publish('answer.other', index)
  const late = again()
  await eventually(() => expect(late.named('whole')[0]?.data).toMatchObject({ status: 'none', text: '' }))
})

it('readers follow no more text than a node keeps: beyond it they come back, or are refused', async () => {
  const piece = 'x'.repeat(4 * 1_048_576 - 1_024)
  const { server, port } = await start({
    maxStreamBytes: 10 * piece.length,
    maxOutboxBytes: 20 * piece.length,
    maxPayloadBytes: 10 * piece.length,
    historyMaxBytes: 40 * piece.length,
    transport: 'ws',
  })
  const isWithin = () => expect(server.stats().streams.keptBytes).toBeLessThanOrEqual(64 * 1_048_576)
  const write = async (key: string, count: number) => {
    const stream = await server.stream(key)
    for (let index = 0; index < count; index++) await stream.append(piece)
    return stream
  }
  // A text counts twice its bytes.
  const one = await write('answer.1', 5)
  const first = new SseReader(port, 'stream=answer.1')
  await first.next('whole')
  const two = await write('answer.2', 4)
  const refused = new SseReader(port, 'stream=answer.2')
  await ended(refused)
  expect(refused.events[1]?.data).toMatchObject({ code: 'E_STREAM_LIMIT' })
  expect(first.client.isEnded).toBe(false)
  isWithin()
  // Nothing else is left to be forgotten.
  for (let index = 0; index < 4; index++) await one.append(piece)
  await ended(first)
  isWithin()
  await two.append('.')
  const second = new SseReader(port, 'stream=answer.2')
  await second.next('whole')
  expect(textOf(second) === `${piece.repeat(4)}.`).toBe(true)
  isWithin()
})
