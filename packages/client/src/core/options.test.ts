import { afterEach, describe, expect, it, vi } from 'vitest'
import { Doc } from 'yjs'
import { createTestServer } from '../dev/testing/index.js'
import { webmq } from '../dev/vite/index.js'
import { appLifecycle } from '../frameworks/native/app-lifecycle.js'
import { messagesStore } from '../frameworks/stores/messages.js'
import { WebMQClient } from '../index.js'
import { streamTransport } from '../parts/ai/index.js'
import {
  concurrently,
  history,
  iterate,
  latest,
  loaded,
  presence,
  request,
  respond,
  state,
  work,
} from '../parts/index.js'
import { outbox } from '../parts/outbox/index.js'
import { withTopics } from '../parts/schema/index.js'
import { eventStreams } from '../parts/sse/index.js'
import { openStream, readStream, stopStream } from '../parts/stream/index.js'
import { sharedTabs } from '../parts/tabs/index.js'
import { YjsProvider } from '../parts/yjs/index.js'
import type { ClientOptions } from './client-options.js'
import { webSocketUrl } from './options.js'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const { WebSocket, url } = createTestServer()
const codeOf = (options: ClientOptions) => {
  try {
    return new WebMQClient(options).state
  } catch (error) {
    return (error as Error).message
  }
}

describe('options', () => {
  it.each<[string, ClientOptions, string]>([
    ['no url', { url: '', WebSocket }, 'option is not valid: url '],
    ['a url that is none', { url: '//', WebSocket }, 'option is not valid: url //'],
    ['another scheme', { url: 'ftp://example.com', WebSocket }, 'option is not valid: url ftp://example.com'],
    ['a negative time', { url, WebSocket, ackTimeoutMs: -1 }, 'option is not valid: ackTimeoutMs'],
    ['no number', { url, WebSocket, reconnect: { minMs: Number.NaN } }, 'option is not valid: minMs'],
    [
      'a misspelt one',
      { url, WebSocket, tokken: 'x' } as ClientOptions,
      'option is not valid: tokken: unknown option, did you mean token?',
    ],
    ['an address alone', url as never, 'option is not valid: its options are no object'],
    ['none', undefined as never, 'option is not valid: its options are no object'],
    ['a token that is none', { url, WebSocket, token: 5 as never }, 'option is not valid: token: neither a text nor'],
    [
      'one that belongs to a group',
      { url, WebSocket, reconnect: { minMS: 1 } as object },
      'option is not valid: reconnect.minMS: unknown option, did you mean minMs?',
    ],
    [
      'one of another library',
      { url, WebSocket, offlineQueue: { persist: true } as object },
      'option is not valid: offlineQueue.persist: unknown option',
    ],
    [
      'times that exclude each other',
      { url, WebSocket, reconnect: { minMs: 10, maxMs: 5 } },
      'option is not valid: reconnect: minMs 10 is more than maxMs 5',
    ],
    [
      'a first wait above the default of the last',
      { url, WebSocket, reconnect: { minMs: 60_000 } },
      'option is not valid: reconnect: minMs 60000 is more than maxMs 20000',
    ],
  ])('are refused at once: %s', (_what, options, message) => {
    expect(codeOf(options)).toContain(message)
  })

  it('may shorten all waits by the longest alone', () => {
    expect(codeOf({ url, WebSocket, reconnect: { maxMs: 5 } })).toBe('idle')
  })

  it('of listens and publishes are refused if they are misspelt', async () => {
    await using client = new WebMQClient({ url, WebSocket })
    expect(() => client.listen('a', () => undefined, { lats: 1 } as object)).toThrow(
      'option is not valid: listen: lats: unknown option, did you mean last?',
    )
    await expect(client.publish('a', 1, { ephemerl: true } as object)).rejects.toThrow(
      'option is not valid: publish: ephemerl: unknown option, did you mean ephemeral?',
    )
  })

  const handle = () => undefined
  it.each<[string, (client: WebMQClient, options: object) => unknown, string]>([
    ['reverce', (client, options) => history('a', { client, ...options }), 'history: reverce: unknown option'],
    ['timeout', (client, options) => request('a', 1, { client, ...options }), 'did you mean timeoutMs?'],
    ['grop', (client, options) => respond('a', handle, { client, ...options }), 'did you mean group?'],
    ['grop', (client, options) => work('a', handle, { client, group: 'g', ...options }), 'did you mean group?'],
    ['evry', (client, options) => state('a', { client, ...options }), 'did you mean every?'],
    ['mta', (client, options) => openStream('a', { client, ...options }), 'did you mean meta?'],
    ['ids', (client, options) => readStream('a', { client, ...options }), 'did you mean id?'],
    ['reson', (client, options) => stopStream('a', { client, ...options }), 'did you mean reason?'],
    ['clint', (_, options) => presence('a', options), 'did you mean client?'],
    ['maxKey', (_, options) => latest(handle, options), 'did you mean maxKeys?'],
    ['maxMessage', (_, options) => concurrently(handle, { concurrency: 1, ...options }), 'did you mean maxMessages?'],
    ['bufferMaxMessage', (_, options) => loaded(handle, handle, options), 'did you mean bufferMaxMessages?'],
    ['lats', (client, options) => iterate('a', { client, ...options }), 'did you mean last?'],
    ['websocket', (_, options) => eventStreams(options), 'did you mean WebSocket?'],
    ['nam', (_, options) => sharedTabs(options), 'did you mean name?'],
    ['nme', (client, options) => outbox({ client, ...options }), 'did you mean name?'],
    ['recieve', (client, options) => withTopics(client, {}, options), 'did you mean receive?'],
    ['aks', (_, options) => streamTransport(options), 'did you mean ask?'],
    ['appState', (_, options) => appLifecycle(options), 'did you mean AppState?'],
    ['verfyToken', (_, options) => createTestServer(options), 'did you mean verifyToken?'],
    ['strat', (_, options) => webmq(options), 'strat: unknown option, there are path, target,'],
    ['limits', (client, options) => messagesStore(client, 'a', options), 'did you mean limit?'],
    ['maxByte', (client, options) => new YjsProvider(new Doc(), 'a', { client, ...options }), 'did you mean maxBytes?'],
  ])('of parts are refused if they are misspelt: %s', async (name, call, message) => {
    await using client = new WebMQClient({ url, WebSocket })
    await expect((async () => call(client, { [name]: 1 }))()).rejects.toThrow(message)
  })

  it.each<[string, (client: WebMQClient, value: never) => unknown, unknown[], string]>([
    ['publish', (client, echo) => client.publish('a', 1, { echo }), ['no', 0], 'publish: echo: it is not a boolean'],
    ['publish', (client, ack) => client.publish('a', 1, { ack }), ['non', 5], 'one of broker, none'],
    ['publish', (client, when) => client.publish('a', 1, { whenOffline: when }), ['que', true], 'one of queue, reject'],
    ['listen', (client, meta) => client.listen('a', handle, { meta }), ['yes', 1], 'listen: meta: it is not a boolean'],
    [
      'listen',
      (client, signal) => client.listen('a', handle, { signal }),
      ['x'],
      'listen: signal: it is not an object',
    ],
    ['history', (client, reverse) => history('a', { client, reverse }), ['false'], 'reverse: it is not a boolean'],
    ['request', (client, timeoutMs) => request('a', 1, { client, timeoutMs }), ['5'], 'timeoutMs: it is not a number'],
    ['iterate', (client, on) => iterate('a', { client, bufferOverflow: on }), ['drop'], 'one of close, drop-oldest'],
    ['openStream', (client, id) => openStream('a', { client, id }), [5], 'openStream: id: it is not a string'],
    ['setup', (_, whenOffline) => new WebMQClient({ url, whenOffline }), ['wait'], 'whenOffline wait: one of queue'],
    [
      'setup',
      (_, ackTimeoutMs) => new WebMQClient({ url, ackTimeoutMs }),
      ['5', {}],
      'ackTimeoutMs: it is not a number',
    ],
    [
      'setup',
      (_, maxMs) => new WebMQClient({ url, reconnect: { maxMs } }),
      ['9'],
      'reconnect.maxMs: it is not a number',
    ],
  ])('of another kind are refused: %s %#', async (_name, call, values, message) => {
    await using client = new WebMQClient({ url, WebSocket })
    for (const value of values) await expect((async () => call(client, value as never))()).rejects.toThrow(message)
  })

  it('name an event or a handler that there is', async () => {
    await using client = new WebMQClient({ url, WebSocket })
    expect(() => client.on('statuss' as 'status', handle)).toThrow('statuss is no event, did you mean status?')
    expect(() => presence('a', { client }).on('entr' as 'enter', handle)).toThrow('did you mean enter?')
    expect(() => client.listen('a', handle, { overflow: 'drop' as never })).toThrow('overflow drop: one of disconnect,')
    for (const call of [client.listen, latest, work, respond] as ((...args: unknown[]) => unknown)[]) {
      expect(() => call.call(client, 'a', undefined, { client, group: 'g' })).toThrow('option is not valid')
    }
    expect(() => work('a', handle, undefined as never)).toThrow('work: its options are no object')
    expect(() => work('a', handle, { client } as never)).toThrow('option is not valid: group undefined')
  })

  it('need a WebSocket at the first connection, and use the runtime’s own', async () => {
    vi.stubGlobal('WebSocket', undefined)
    vi.spyOn(console, 'error').mockReturnValue()
    const client = new WebMQClient({ url })
    await expect(client.connect()).rejects.toThrow("option is not valid: no WebSocket: pass that of 'ws'")
    expect(client.state).toBe('closed')
    vi.stubGlobal('WebSocket', WebSocket)
    await client.open()
    expect(client.state).toBe('connected')
    await client.close()
  })

  // A server that renders pages has neither a location nor, with Node 20, a WebSocket: `setup` threw at import.
  it('may be relative to a page that is not there yet', async () => {
    vi.stubGlobal('WebSocket', undefined)
    vi.spyOn(console, 'error').mockReturnValue()
    expect(codeOf({ url: '/ws' })).toBe('idle')
    const client = new WebMQClient({ url: '/ws', WebSocket })
    await expect(client.connect()).rejects.toThrow('option is not valid: url /ws')
    expect(client.state).toBe('closed')
  })

  // React Native's URL throws in its setters, and appends a slash to every path. It has no `crypto`.
  it('work without setters of URL and without crypto', async () => {
    const server = createTestServer()
    class NativeUrl {
      readonly #url: string
      constructor(url: string) {
        this.#url = url
      }
      get href() {
        return `${this.#url}/`
      }
      set protocol(_value: string) {
        throw new Error('not implemented')
      }
    }
    vi.stubGlobal('URL', NativeUrl)
    vi.stubGlobal('crypto', undefined)
    expect(webSocketUrl('https://example.com/ws')).toBe('wss://example.com/ws')
    const client = new WebMQClient({ url: server.url, WebSocket: server.WebSocket })
    const results = await Promise.all([client.publish('a', 1), client.publish('a', 2)])
    expect(new Set(results.map(({ id }) => id)).size).toBe(2)
    await presence('room', { client }).enter()
    await client.close()
  })
})

describe('webSocketUrl', () => {
  it.each([
    ['wss://example.com/ws', 'wss://example.com/ws'],
    ['https://example.com/ws?x=1#part', 'wss://example.com/ws?x=1'],
    ['http://localhost:8080', 'ws://localhost:8080'],
    ['HTTP://localhost:8080/ws', 'ws://localhost:8080/ws'],
    [new URL('ws://localhost/ws'), 'ws://localhost/ws'],
  ])('of %s is %s', (given, expected) => {
    expect(webSocketUrl(given)).toBe(expected)
  })

  it.each([
    ['/ws', 'wss://app.example.com/ws'],
    ['live', 'wss://app.example.com/shop/live'],
    ['//other.example.com/ws', 'wss://other.example.com/ws'],
  ])('of %s is relative to the page', (given, expected) => {
    vi.stubGlobal('location', { href: 'https://app.example.com/shop/cart' })
    expect(webSocketUrl(given)).toBe(expected)
  })
})
