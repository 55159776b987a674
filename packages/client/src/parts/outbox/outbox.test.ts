import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import { WebMQError } from '../../protocol/index.js'
import { outbox } from './index.js'
import { LiveOutbox } from './outbox.js'
import type { OutboxMessage, OutboxStore, StoredMessage } from './store.js'
import type { OutboxOptions } from './types.js'

/** What a disk keeps over a reload. */
class Disk implements OutboxStore {
  messages: StoredMessage[] = []
  #place = 0

  async add(message: OutboxMessage, { maxMessages }: { maxMessages: number }): Promise<void> {
    if (this.messages.some(({ key, id }) => key === message.key && id === message.id)) return
    if (this.messages.length >= maxMessages) throw new WebMQError('E_QUEUE_FULL')
    this.messages.push({ ...message, place: ++this.#place })
  }

  async list(): Promise<readonly StoredMessage[]> {
    return [...this.messages]
  }

  async count(): Promise<number> {
    return this.messages.length
  }

  async mark(place: number, attemptedAtMs: number | undefined): Promise<void> {
    this.messages = this.messages.map((one) => (one.place === place ? { ...one, attemptedAtMs } : one))
  }

  async remove(place: number): Promise<void> {
    this.messages = this.messages.filter((one) => one.place !== place)
  }

  close(): void {
    // A disk stays.
  }
}

function page(server: TestServer, disk: Disk, options: OutboxOptions = {}, nowMs = () => 1_000) {
  const { client } = createTestClient({ server, random: () => 0 })
  const environment = { store: disk, locks: undefined, channel: undefined, nowMs }
  const box = new LiveOutbox(client, options, 'test', environment)
  const failed = vi.fn()
  box.on('failed', ({ id, error }) => failed(id, error.code))
  const end = async () => {
    box.close()
    await client.close({ flushMs: 0 })
  }
  onTestFinished(end)
  return { client, box, failed, end }
}

const published = (server: TestServer) =>
  server.received.flatMap((message) =>
    message.verb === 'publish' ? [[message.key, new TextDecoder().decode(message.payload as Uint8Array)]] : [],
  )

describe('an outbox without a database', () => {
  const refusing = (open: () => unknown) => ({ open })
  it.each([
    ['in a runtime without IndexedDB', undefined],
    [
      'that the browser forbids',
      refusing(() => {
        throw new DOMException('no', 'SecurityError')
      }),
    ],
  ])('refuses with a code: %s', async (_where, indexedDB) => {
    vi.stubGlobal('indexedDB', indexedDB)
    onTestFinished(() => void vi.unstubAllGlobals())
    const { client } = createTestClient()
    client.on('error', () => undefined)
    const box = outbox({ client })
    await expect(box.publish('a', 1)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    box.close()
    await client.close()
  })
})

describe('an outbox', () => {
  it('sends in order within a key, and removes what was confirmed', async () => {
    const server = createTestServer()
    const disk = new Disk()
    const { box } = page(server, disk)
    const stored = await Promise.all([1, 2, 3].map((n) => box.publish('a', n)))
    await Promise.all(stored.map(({ confirmed }) => confirmed))
    expect(published(server)).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['a', '3'],
    ])
    expect(disk.messages).toEqual([])
    await vi.waitFor(() => expect(box.waitingCount).toBe(0))
  })

  it('confirms a message to all that have added it under one id', async () => {
    const server = createTestServer()
    server.isUp = false
    const { box } = page(server, new Disk())
    const first = await box.publish('a', 1, { id: 'same' })
    const second = await box.publish('a', 1, { id: 'same' })
    server.isUp = true
    await Promise.all([first.confirmed, second.confirmed])
    expect(published(server)).toEqual([['a', '1']])
  })

  // Symptom: a message was reported as perhaps sent, and was not sent. Cause: it had been noted as sent when the connection was
  // lost, just before it was.
  it('sends what it was about to send when the connection was lost, however long ago', async () => {
    const server = createTestServer()
    const disk = new Disk()
    let nowMs = 1_000
    const { box, client, failed } = page(server, disk, {}, () => nowMs)
    await client.connect()
    const lost = new Promise<void>((resolve) => {
      client.on('status', ({ state }) => state !== 'connected' && resolve())
    })
    const mark = disk.mark.bind(disk)
    disk.mark = async (...marked) => {
      disk.mark = mark
      await mark(...marked)
      server.isUp = false
      server.drop()
      await lost
    }
    const { confirmed } = await box.publish('a', 1)
    await lost
    await new Promise(setImmediate)
    nowMs += 3_600_000
    server.isUp = true
    await confirmed
    expect(published(server)).toEqual([['a', '1']])
    expect(failed).not.toHaveBeenCalled()
  })

  it('gives up a message that the codec of this page does not read, and goes on with the next', async () => {
    const server = createTestServer()
    const disk = new Disk()
    await disk.add({ id: 'old', key: 'a', payload: '{', bytes: 1, createdAtMs: 1_000 }, { maxMessages: 2 })
    const { box, failed } = page(server, disk)
    const { confirmed } = await box.publish('a', 1)
    await confirmed
    expect(failed.mock.calls).toEqual([['old', 'E_PAYLOAD_INVALID']])
    expect(disk.messages).toEqual([])
  })

  it('sends after a reload what the page before could not', async () => {
    const server = createTestServer()
    server.isUp = false
    const disk = new Disk()
    const before = page(server, disk)
    const { id, confirmed } = await before.box.publish('a', { text: 'hi' })
    await before.end()
    await expect(confirmed).rejects.toMatchObject({ code: 'E_CLOSED' })
    server.isUp = true
    const { box } = page(server, disk)
    const sent = vi.fn()
    box.on('sent', sent)
    await vi.waitFor(() => expect(sent).toHaveBeenCalledOnce())
    expect(sent).toHaveBeenCalledWith({ key: 'a', result: expect.objectContaining({ id, duplicate: false }) })
    expect(disk.messages).toEqual([])
  })

  // Symptom: it failed as "may have arrived" two minutes later, although nothing was sent.
  it('notes no attempt for a message when the connection is lost just before it is sent', async () => {
    const server = createTestServer()
    const disk = new Disk()
    const { client, box } = page(server, disk)
    await client.connect()
    const mark = disk.mark.bind(disk)
    disk.mark = async (...args) => {
      server.isUp = false
      server.drop()
      await vi.waitFor(() => expect(client.state).toBe('reconnecting'))
      disk.mark = mark
      await mark(...args)
    }
    await box.publish('a', 1)
    await vi.waitFor(() => expect(disk.mark).toBe(mark))
    await vi.waitFor(() => expect(disk.messages).toMatchObject([{ attemptedAtMs: undefined }]))
    expect(published(server)).toEqual([])
  })

  // Symptom: nobody was told, and the promise never settled.
  it('tells of a failure whose payload other tabs cannot be told', async () => {
    const codec = { encode: (payload: unknown) => Uint8Array.of(Number(payload)), decode: () => ({ handler: () => 0 }) }
    const { client, server } = createTestClient({ codec })
    client.on('error', () => undefined)
    const channel = {
      postMessage: (news: unknown) => void structuredClone(news),
      close: () => undefined,
      onmessage: null,
    }
    const box = new LiveOutbox(client, {}, 'test', { store: new Disk(), locks: undefined, channel, nowMs: () => 1_000 })
    const failed = vi.fn()
    box.on('failed', ({ error }) => failed(error.code))
    server.refuse('publish', 'E_FORBIDDEN')
    const { confirmed } = await box.publish('a', 1)
    await expect(confirmed).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    expect(failed.mock.calls).toEqual([['E_FORBIDDEN']])
    box.close()
    await client.close({ flushMs: 0 })
  })

  it('sends with the same id a message whose answer was lost with the page', async () => {
    const server = createTestServer()
    const disk = new Disk()
    const before = page(server, disk)
    await before.client.connect()
    server.loseAnswer('publish')
    await before.box.publish('a', 1)
    await vi.waitFor(() => expect(published(server)).toHaveLength(1))
    await before.end()
    const { box } = page(server, disk)
    const sent = vi.fn()
    box.on('sent', ({ result }) => sent(result.duplicate))
    await vi.waitFor(() => expect(sent).toHaveBeenCalledWith(true))
  })

  it.each([
    ['report', 120_000, [['m', 'E_TIMEOUT']], 1],
    ['report', 119_999, [], 2],
    ['send', 120_000, [], 2],
  ] as const)('after the window (%s, %i ms): failed %j', async (afterWindow, passedMs, failures, sentCount) => {
    const server = createTestServer()
    const disk = new Disk()
    const before = page(server, disk)
    await before.client.connect()
    server.loseAnswer('publish')
    await before.box.publish('a', 1, { id: 'm' })
    await vi.waitFor(() => expect(published(server)).toHaveLength(1))
    await before.end()
    const { failed } = page(server, disk, { afterWindow }, () => 1_000 + passedMs)
    await vi.waitFor(() => expect(disk.messages).toEqual([]))
    expect(failed.mock.calls).toEqual(failures)
    expect(published(server)).toHaveLength(sentCount)
  })

  it('fails, with a clock that was set back, rather than sending twice', async () => {
    const server = createTestServer()
    const disk = new Disk()
    disk.messages = [{ id: 'm', key: 'a', payload: '1', bytes: 1, place: 1, createdAtMs: 5_000, attemptedAtMs: 5_000 }]
    const { failed } = page(server, disk, {}, () => 4_000)
    await vi.waitFor(() => expect(failed).toHaveBeenCalledWith('m', 'E_TIMEOUT'))
    expect(published(server)).toEqual([])
  })

  it('drops a message that was never sent after its age, and tells it', async () => {
    const server = createTestServer()
    const disk = new Disk()
    disk.messages = [{ id: 'm', key: 'a', payload: '1', bytes: 1, place: 1, createdAtMs: 0 }]
    const { failed } = page(server, disk, { maxAgeMs: 999 })
    await vi.waitFor(() => expect(failed).toHaveBeenCalledWith('m', 'E_TIMEOUT'))
    expect(disk.messages).toEqual([])
  })

  it('removes a message that the server refuses for good, and goes on', async () => {
    const server = createTestServer()
    const disk = new Disk()
    const { box, failed } = page(server, disk)
    server.refuse('publish', 'E_FORBIDDEN')
    const first = await box.publish('a', 1, { id: 'm' })
    const second = await box.publish('a', 2)
    await expect(first.confirmed).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await second.confirmed
    expect(failed.mock.calls).toEqual([['m', 'E_FORBIDDEN']])
  })

  it('tries again what the server refuses for now, before later messages of the key', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const server = createTestServer()
    const { box, client } = page(server, new Disk())
    await client.connect()
    server.refuse('publish', 'E_BROKER_UNAVAILABLE')
    server.refuse('publish', 'E_RATE_LIMIT')
    const [first, second] = await Promise.all([box.publish('a', 1), box.publish('a', 2)])
    await vi.advanceTimersByTimeAsync(2_000)
    await Promise.all([first.confirmed, second.confirmed])
    expect(published(server).map(([, payload]) => payload)).toEqual(['1', '1', '1', '2'])
  })

  it('goes on after a lost connection, without a second copy', async () => {
    const server = createTestServer()
    const { box, client } = page(server, new Disk())
    await client.connect()
    server.loseAnswer('publish')
    const { confirmed } = await box.publish('a', 1)
    await vi.waitFor(() => expect(published(server)).toHaveLength(1))
    server.drop()
    expect(await confirmed).toMatchObject({ duplicate: true })
  })

  it('refuses what does not fit, and what is not valid', async () => {
    const server = createTestServer()
    server.isUp = false
    const { box } = page(server, new Disk(), { maxMessages: 1 })
    await box.publish('a', 1, { id: 'same' })
    // It is there already.
    await box.publish('a', 1, { id: 'same' })
    await expect(box.publish('a', 2)).rejects.toMatchObject({ code: 'E_QUEUE_FULL' })
    await expect(box.publish('a.*', 2)).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    await expect(box.publish('a', () => 1)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await expect(box.publish('a', 1, { id: 'a b' })).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    expect(() => page(server, new Disk(), { maxBytes: -1 })).toThrow('maxBytes')
  })
})
