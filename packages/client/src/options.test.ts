import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientOptions } from './client-options.js'
import { WebMQClient } from './index.js'
import { webSocketUrl } from './options.js'
import { createTestServer } from './testing/index.js'

afterEach(() => {
  vi.unstubAllGlobals()
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
  ])('are refused at once: %s', (_what, options, message) => {
    expect(codeOf(options)).toBe(message)
  })

  it('need a WebSocket where the runtime has none, and use the runtime’s own', () => {
    vi.stubGlobal('WebSocket', undefined)
    expect(codeOf({ url })).toBe("option is not valid: no WebSocket here; pass one, e.g. `WebSocket` of 'ws'")
    vi.stubGlobal('WebSocket', WebSocket)
    expect(codeOf({ url })).toBe('idle')
  })
})

describe('webSocketUrl', () => {
  it.each([
    ['wss://example.com/ws', 'wss://example.com/ws'],
    ['https://example.com/ws?x=1#part', 'wss://example.com/ws?x=1'],
    ['http://localhost:8080', 'ws://localhost:8080/'],
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
