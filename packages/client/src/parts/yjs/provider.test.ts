import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import * as Y from 'yjs'
import { WebMQClient } from '../../core/client.js'
import type { WebSocketLike } from '../../core/client-options.js'
import { createTestServer, type TestServer, type TestServerOptions } from '../../dev/testing/index.js'
import { type ProviderOptions, YjsProvider } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const KEY = 'board.1'
/** Longer than a merge, a reconnect, a read and an exchange of states. */
const settle = () => vi.advanceTimersByTimeAsync(8_000)
/** Longer than any time between two attempts to connect. */
const reconnect = () => vi.advanceTimersByTimeAsync(30_000)

/** A browser with one document, which may be offline. */
class Browser {
  readonly doc = new Y.Doc()
  readonly client: WebMQClient
  readonly provider: YjsProvider
  readonly errors: unknown[] = []
  #isOffline = false
  #socket: WebSocketLike | undefined

  constructor(server: TestServer, { random = () => 0.5, ...options }: ProviderOptions = {}) {
    const opened = (socket: WebSocketLike) => {
      this.#socket = socket
      if (this.#isOffline) queueMicrotask(() => this.#cut())
    }
    class WebSocket extends server.WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols)
        opened(this)
      }
    }
    this.client = new WebMQClient({ url: server.url, WebSocket })
    this.provider = new YjsProvider(this.doc, KEY, { client: this.client, random, ...options })
    this.provider.on('error', (error) => this.errors.push(error))
    this.client.on('error', ({ error }) => this.errors.push(error))
  }

  get text(): string {
    return this.doc.getText('text').toString()
  }

  write(text: string, at = 0): void {
    this.doc.getText('text').insert(at, text)
  }

  erase(at: number, length: number): void {
    this.doc.getText('text').delete(at, length)
  }

  goOffline(): void {
    this.#isOffline = true
    this.#cut()
  }

  goOnline(): void {
    this.#isOffline = false
  }

  async close(): Promise<void> {
    await this.provider.destroy()
    await this.client.close({ flushMs: 0 })
  }

  #cut(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.onclose?.({ code: 1006, reason: '' } as never)
    socket?.close()
  }
}

const open = (options: TestServerOptions = {}) => createTestServer({ retain: ['board.*.snapshot.#'], ...options })

describe('a document', () => {
  it('is the same for all who open its key, at once and later', async () => {
    const server = open()
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    one.write('world')
    await settle()
    other.write('hello ')
    other.erase(6, 1)
    await settle()
    const later = new Browser(server)
    await later.provider.whenSynced()
    await settle()
    expect([one.text, other.text, later.text]).toEqual(['hello orld', 'hello orld', 'hello orld'])
    expect([...one.errors, ...other.errors, ...later.errors]).toEqual([])
  })

  it('has one message for the updates of a frame', async () => {
    const server = open()
    const one = new Browser(server)
    await settle()
    const before = published(server, 'updates')
    for (let index = 0; index < 50; index++) one.write('x')
    await settle()
    expect(published(server, 'updates') - before).toBe(1)
  })

  it('keeps what was written before there was a provider or a connection', async () => {
    const server = open()
    server.isUp = false
    const one = new Browser(server)
    one.write('early')
    server.isUp = true
    const other = new Browser(server)
    await reconnect()
    expect(other.text).toBe('early')
  })

  it('merges the edits of two offline browsers over a server that has lost everything', async () => {
    const server = open()
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    one.write('base ')
    await settle()
    one.goOffline()
    other.goOffline()
    one.write('one ')
    other.write('other ')
    other.erase(6, 2)
    await settle()
    server.restartHistory()
    one.goOnline()
    other.goOnline()
    await reconnect()
    expect(one.text).toBe(other.text)
    expect(one.text).toContain('one ')
    expect(one.text).toContain('other ')
    const later = new Browser(server)
    await settle()
    expect(later.text).toBe(one.text)
  })

  it('is given back by its clients to a server that has lost everything, once', async () => {
    const server = open()
    const browsers = Array.from({ length: 5 }, () => new Browser(server, { random: Math.random, snapshotAfterMs: 1e9 }))
    await settle()
    browsers[0]?.write('kept')
    await settle()
    const before = published(server, 'updates')
    server.restartHistory()
    server.drop()
    await settle()
    expect(published(server, 'updates') - before).toBeLessThan(browsers.length)
    await Promise.all(browsers.map((browser) => browser.close()))
    const later = new Browser(server)
    await settle()
    expect(later.text).toBe('kept')
  })

  it('is read from a snapshot and the log after it when the log was cut', async () => {
    const server = open({ historyMaxMessages: 30 })
    const one = new Browser(server, { snapshotAfterMs: 1_000 })
    await settle()
    for (let index = 0; index < 60; index++) {
      one.write(`${index} `)
      await vi.advanceTimersByTimeAsync(100)
    }
    await settle()
    one.write('last ')
    await vi.advanceTimersByTimeAsync(50)
    await one.close()
    const later = new Browser(server)
    await settle()
    expect(later.text).toBe(one.text)
    expect(later.provider.synced).toBe(true)
  })

  it('asks others for what was cut from the log, where no snapshot is retained', async () => {
    const server = open({ historyMaxMessages: 10, retain: [] })
    const one = new Browser(server, { snapshotAfterMs: 1_000 })
    await settle()
    for (let index = 0; index < 60; index++) {
      one.write(`${index} `)
      await vi.advanceTimersByTimeAsync(30)
    }
    const later = new Browser(server)
    await settle()
    expect(later.text).toBe(one.text)
    expect(later.provider.synced).toBe(true)
    expect(
      server.received.filter((message) => message.verb === 'publish' && message.key.includes('.snapshot.')),
    ).toEqual([])
  })

  it('needs no log while somebody has it open', async () => {
    const server = open({ historyMaxMessages: 0 })
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    one.write('one ')
    await settle()
    one.goOffline()
    one.write('offline ')
    other.write('other ')
    await settle()
    one.goOnline()
    await reconnect()
    expect(one.text).toBe(other.text)
    expect([...one.text.split(' ')].toSorted()).toEqual(['', 'offline', 'one', 'other'])
  })

  it('is sent in parts when it is larger than a message may be', async () => {
    const server = open({ limits: { maxPayloadBytes: 1_024 } })
    const one = new Browser(server, { snapshotAfterMs: 100 })
    await settle()
    one.write('x'.repeat(50_000))
    await settle()
    const later = new Browser(server)
    await settle()
    expect(later.text === one.text).toBe(true)
    const sizes = server.received.flatMap((message) => (message.verb === 'publish' ? [message.payload.length] : []))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_024)
  })

  it('keeps changes that were refused, and sends them on the next connection', async () => {
    const server = open()
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    server.refuse('publish', 'E_FORBIDDEN')
    one.write('refused')
    await settle()
    expect([other.text, one.errors.length]).toEqual(['', 1])
    server.drop()
    await settle()
    expect(other.text).toBe('refused')
  })

  it('reports what is no frame or no update, and goes on', async () => {
    const server = open()
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    const frame = (kind: number, ...bytes: number[]) => Uint8Array.from([kind, 0, 0, 0, 1, 0, 0, 0, 1, ...bytes])
    for (const key of ['updates', 'live']) {
      for (const payload of [{ no: 'bytes' }, new Uint8Array(3), frame(9), frame(0, 255, 255), frame(1, 255, 255)]) {
        server.publish(`${KEY}.${key}`, payload)
      }
    }
    server.publish(`${KEY}.live`, frame(4, 255, 255))
    await settle()
    expect(other.errors.length).toBeGreaterThanOrEqual(10)
    one.write('still here')
    await settle()
    expect(other.text).toBe('still here')
  })

  it('is read although a snapshot is not readable', async () => {
    const server = open()
    const one = new Browser(server, { snapshotAfterMs: 1e9 })
    await settle()
    one.write('whole')
    await settle()
    for (const slot of ['a.0', 'b.0', 'b.1', 'c.0']) server.publish(`${KEY}.snapshot.${slot}`, 'nonsense')
    server.publish(`${KEY}.snapshot.a.0`, Uint8Array.from([2, 0, 0, 0, 1, 0, 0, 0, 1, 200]))
    await one.close()
    const later = new Browser(server)
    await settle()
    expect([later.text, later.provider.synced]).toEqual(['whole', true])
    expect(later.errors).toHaveLength(3)
  })

  it('answers many questions at once, with one update', async () => {
    const server = open()
    const one = new Browser(server, { snapshotAfterMs: 1e9 })
    await settle()
    one.write('answer')
    await settle()
    const before = published(server, 'updates')
    const nothing = Uint8Array.from([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0])
    for (let count = 0; count < 100; count++) server.publish(`${KEY}.live`, nothing)
    await settle()
    expect(published(server, 'updates') - before).toBe(1)
  })

  it('leaves no timer or listen behind', async () => {
    const server = open()
    const one = new Browser(server)
    await settle()
    one.write('last words')
    await one.provider.destroy()
    expect(server.patterns).toEqual([])
    const other = new Browser(server)
    await settle()
    expect(other.text).toBe('last words')
    await Promise.all([one.client.close(), other.close()])
    one.provider.awareness.destroy()
    other.provider.awareness.destroy()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('converges after any edits, lost connections, and losses of the log', async () => {
    const who = fc.integer({ min: 0, max: 2 })
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('write' as const), who, at: fc.nat(20) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('erase' as const), who, at: fc.nat(20) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('offline' as const), who }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('online' as const), who }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(3_000) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('restart', 'expire', 'drop', 'gap') }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(5), async (steps, seed) => {
        const server = open({ historyMaxMessages: 20, limits: { maxPayloadBytes: 200 } })
        let chance = seed
        const random = () => (chance = (chance + 0.37) % 1)
        const browsers = Array.from({ length: 3 }, () => new Browser(server, { random, snapshotAfterMs: 500 }))
        let count = 0
        for (const action of steps) {
          const browser = 'who' in action ? browsers[action.who] : undefined
          const length = browser?.text.length ?? 0
          if (action.kind === 'write') browser?.write(`${count++} `, Math.min(action.at, length))
          else if (action.kind === 'erase') browser?.erase(Math.min(action.at, length), length > action.at ? 1 : 0)
          else if (action.kind === 'offline') browser?.goOffline()
          else if (action.kind === 'online') browser?.goOnline()
          else if (action.kind === 'wait') await vi.advanceTimersByTimeAsync(action.ms)
          else if (action.kind === 'drop') server.drop()
          else if (action.kind === 'gap') server.gap(`${KEY}.updates`)
          else if (action.kind === 'expire') server.expireHistory()
          else {
            server.restartHistory()
            server.drop()
          }
        }
        for (const browser of browsers) browser.goOnline()
        await vi.advanceTimersByTimeAsync(60_000)
        const texts = browsers.map(({ text }) => text)
        expect(new Set(texts).size, texts.join('\n')).toBe(1)
        await Promise.all(browsers.map((browser) => browser.close()))
      }),
      { numRuns: 25 },
    )
  })
})

describe('the awareness', () => {
  it('shows others at once, tells those who come later, and forgets those who leave', async () => {
    const server = open()
    const [one, other] = [new Browser(server), new Browser(server)]
    await settle()
    one.provider.awareness.setLocalState({ name: 'Ada' })
    await vi.advanceTimersByTimeAsync(50)
    const seenBy = ({ provider }: Browser) => provider.awareness.getStates().get(one.doc.clientID)
    expect(seenBy(other)).toEqual({ name: 'Ada' })
    const moves = server.received.filter((message) => message.verb === 'publish' && message.key === `${KEY}.live`)
    expect(moves.map((move) => 'ephemeral' in move && move.ephemeral)).not.toContain(false)
    await settle()
    const later = new Browser(server)
    await vi.advanceTimersByTimeAsync(50)
    expect(seenBy(later)).toEqual({ name: 'Ada' })
    await one.close()
    await settle()
    expect([seenBy(other), seenBy(later)]).toEqual([undefined, undefined])
  })

  it('is not published by those who may not be present', async () => {
    const server = open()
    server.revoke(`${KEY}.live`)
    const one = new Browser(server)
    await settle()
    const before = published(server, 'live')
    one.provider.awareness.setLocalStateField('at', 1)
    await settle()
    expect(published(server, 'live')).toBe(before)
    expect(one.errors).not.toEqual([])
  })
})

function published(server: TestServer, name: string): number {
  return server.received.filter((message) => message.verb === 'publish' && message.key === `${KEY}.${name}`).length
}

// Symptom: it never settled.
describe('whenSynced', () => {
  it('rejects when the provider is destroyed, before or after', async () => {
    const server = open()
    server.isUp = false
    const one = new Browser(server)
    const synced = one.provider.whenSynced()
    synced.catch(() => undefined)
    await one.close()
    await expect(synced).rejects.toMatchObject({ code: 'E_CLOSED' })
    await expect(one.provider.whenSynced()).rejects.toMatchObject({ code: 'E_CLOSED' })
  })

  it('rejects while the document is read', async () => {
    const server = open()
    const one = new Browser(server)
    server.ignore('history')
    await vi.advanceTimersByTimeAsync(100)
    const synced = one.provider.whenSynced()
    synced.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(100)
    await one.close()
    await expect(synced).rejects.toMatchObject({ code: 'E_CLOSED' })
  })

  it('rejects when the server refuses the document', async () => {
    const server = open()
    server.revoke(`${KEY}.updates`)
    const one = new Browser(server)
    await expect(one.provider.whenSynced()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await one.close()
  })
})

it('leaves no timer behind, not that of its awareness either', async () => {
  const one = new Browser(open())
  await one.provider.whenSynced()
  await one.close()
  expect(vi.getTimerCount()).toBe(0)
})
