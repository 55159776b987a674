import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { seededRandom } from '../../../test/seeded-random.js'
import { watchedClient } from '../../../test/watched-client.js'
import { appLifecycle, type NetworkState } from './index.js'
import { addMissing } from './missing.js'
import { Utf8Decoder } from './text-decoder.js'

/** `AppState` and NetInfo of a phone. */
function phone() {
  const changes = new Set<() => void>()
  const networks = new Set<(state: NetworkState) => void>()
  let network: NetworkState = { type: 'wifi', isConnected: true, details: { ipAddress: '192.168.1.2', strength: 90 } }
  const AppState = {
    currentState: 'active',
    addEventListener(_: 'change', listener: () => void) {
      changes.add(listener)
      return { remove: () => changes.delete(listener) }
    },
  }
  const NetInfo = {
    addEventListener(listener: (state: NetworkState) => void) {
      networks.add(listener)
      queueMicrotask(() => listener(network))
      return () => networks.delete(listener)
    },
  }
  return {
    modules: { AppState, NetInfo },
    become(state: string) {
      AppState.currentState = state
      for (const change of changes) change()
    },
    network(state: NetworkState) {
      network = state
      for (const tell of networks) tell(state)
    },
    observerCounts: () => [changes.size, networks.size],
  }
}

const AWAY = { type: 'none', isConnected: false, details: null }
const MOBILE = { type: 'cellular', isConnected: true, details: {} }

describe('appLifecycle', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const settle = () => vi.advanceTimersByTimeAsync(0)

  async function connected() {
    const device = phone()
    const { client, server } = watchedClient({ lifecycle: appLifecycle(device.modules) })
    client.listen('a', () => undefined)
    await settle()
    expect(client.state).toBe('connected')
    return { device, client, server }
  }

  it('makes no attempt in the background, and one at once in the foreground', async () => {
    const { device, client, server } = await connected()
    device.become('background')
    await settle()
    expect(client.state).toBe('connected')
    server.drop()
    // The server is there: an attempt would succeed.
    await vi.advanceTimersByTimeAsync(600_000)
    expect(client.state).toBe('reconnecting')
    device.become('active')
    await vi.advanceTimersByTimeAsync(500)
    expect(client.state).toBe('connected')
  })

  it('finds in 2 s that the connection died in the background', async () => {
    const { device, client, server } = await connected()
    device.become('background')
    server.isSilent = true
    await vi.advanceTimersByTimeAsync(5_000)
    expect(client.state).toBe('connected')
    device.become('active')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(client.state).toBe('reconnecting')
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(500)
    expect(client.state).toBe('connected')
  })

  it.each([
    ['the network is away', AWAY],
    ['another network', MOBILE],
    ['another address', { type: 'wifi', isConnected: true, details: { ipAddress: '10.0.0.7' } }],
  ])('checks a live connection: %s', async (_, network) => {
    const { device, client, server } = await connected()
    server.isSilent = true
    device.network(network)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(client.state).toBe('reconnecting')
  })

  it('does not check it for another strength of the signal', async () => {
    const { device, client, server } = await connected()
    server.isSilent = true
    device.network({ type: 'wifi', isConnected: true, details: { ipAddress: '192.168.1.2', strength: 20 } })
    await vi.advanceTimersByTimeAsync(2_000)
    expect(client.state).toBe('connected')
  })

  it('does not wait for the next attempt when the network is back', async () => {
    const { device, client, server } = await connected()
    device.network(AWAY)
    server.isUp = false
    server.drop()
    await vi.advanceTimersByTimeAsync(60_000)
    server.isUp = true
    device.network(MOBILE)
    await vi.advanceTimersByTimeAsync(500)
    expect(client.state).toBe('connected')
  })

  it('observes the app while the client is open', async () => {
    const { device, client } = await connected()
    expect(device.observerCounts()).toEqual([1, 1])
    await client.close()
    expect(device.observerCounts()).toEqual([0, 0])
    await client.open()
    expect(device.observerCounts()).toEqual([1, 1])
  })

  it('needs neither module', async () => {
    const { client, server } = watchedClient({ lifecycle: appLifecycle({}) })
    client.listen('a', () => undefined)
    await settle()
    server.drop()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(client.state).toBe('connected')
  })
})

describe('addMissing', () => {
  it('adds what an engine lacks, and replaces nothing', () => {
    const symbol = Symbol('asyncIterator')
    const lacking = { Symbol: { for: Symbol.for } as { asyncIterator?: symbol; for: typeof Symbol.for } }
    addMissing(lacking)
    expect(lacking).toMatchObject({
      TextDecoder: Utf8Decoder,
      Symbol: { asyncIterator: Symbol.for('Symbol.asyncIterator') },
    })
    const complete = { TextDecoder, Symbol: { for: Symbol.for, asyncIterator: symbol } }
    addMissing(complete)
    expect(complete).toMatchObject({ TextDecoder, Symbol: { asyncIterator: symbol } })
  })
})

describe('Utf8Decoder', () => {
  const outcome = (decode: () => string) => {
    try {
      return decode()
    } catch (error) {
      return (error as Error).name
    }
  }

  const texts = ['', 'hello', 'grüß dich', '€ and 🎉', '\ufeffmark', '\ufeff\ufeff', `${'x'.repeat(9_000)}🎉`]
  // Overlong, surrogates, beyond U+10FFFF, cut short, lone continuations.
  const bytes = [
    'c0 80',
    'e0 80 80',
    'ed a0 80',
    'f4 90 80 80',
    'f8 88',
    'e2 82',
    'f0 9f 8e',
    '80 41',
    'e2 41',
    'ff',
    'ef bb bf 41',
  ]
  const random = seededRandom(7)
  const inputs = [
    ...texts.map((text) => new TextEncoder().encode(text)),
    ...bytes.map((hex) => Uint8Array.from(hex.split(' '), (byte) => Number.parseInt(byte, 16))),
    ...Array.from({ length: 500 }, () => Uint8Array.from({ length: 8 }, () => random() * 256)),
  ]

  it.each([{}, { fatal: true }, { ignoreBOM: true }, { fatal: true, ignoreBOM: true }])(
    'decodes as the one of Node does with %o',
    (options) => {
      for (const input of inputs) {
        const expected = outcome(() => new TextDecoder('utf-8', options).decode(input))
        expect(outcome(() => new Utf8Decoder('utf-8', options).decode(input))).toBe(expected)
      }
    },
  )

  it('decodes a text in pieces, and begins anew after it', () => {
    const decoder = new Utf8Decoder()
    const whole = new TextEncoder().encode('\ufeff€🎉\ufeff')
    for (let turn = 0; turn < 2; turn++) {
      const pieces = Array.from(whole, (byte) => decoder.decode(Uint8Array.of(byte), { stream: true }))
      expect(pieces.join('') + decoder.decode()).toBe('€🎉\ufeff')
    }
  })

  it('takes a view, a buffer or nothing, and knows UTF-8 alone', () => {
    const { buffer } = new TextEncoder().encode('abcdef')
    expect(new Utf8Decoder('UTF8').decode(new DataView(buffer, 2, 3))).toBe('cde')
    expect(new Utf8Decoder().decode(buffer)).toBe('abcdef')
    expect(new Utf8Decoder().decode()).toBe('')
    expect(() => new Utf8Decoder('latin1')).toThrow(RangeError)
  })
})
