import { describe, expect, it, vi } from 'vitest'
import { recordingLogger } from '../../../test/fake-server.js'
import type { GroupId } from '../ports/transport.js'
import { LocalListeners } from './local-listeners.js'

const group = 1 as GroupId

describe('LocalListeners', () => {
  it('drop, count and log what handlers are too slow for, and go on', async () => {
    const { logger, lines } = recordingLogger()
    const listeners = new LocalListeners(logger)
    const handler = vi.fn()
    listeners.add({ pattern: 'k', group, handler })
    const payload = new Uint8Array(16 * 1_048_576)
    for (let index = 0; index < 5; index++) listeners.deliver([group], { key: 'k', payload, isBinary: true })
    expect(listeners.droppedCount).toBe(2)
    expect(lines).toMatchObject([{ level: 'warn', fields: { key: 'k' } }])
    await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(3))
    listeners.deliver([group], { key: 'k', payload, isBinary: true })
    await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(4))
  })

  it('give every handler bytes of its own', async () => {
    const listeners = new LocalListeners(recordingLogger().logger)
    const received: unknown[] = []
    for (let index = 0; index < 2; index++) {
      listeners.add({
        pattern: 'k',
        group,
        handler: (payload) => {
          received.push([...(payload as Uint8Array)])
          ;(payload as Uint8Array).fill(0)
        },
      })
    }
    const payload = Uint8Array.of(1, 2)
    listeners.deliver([group], { key: 'k', payload, isBinary: true })
    payload.fill(9)
    await vi.waitFor(() => expect(received).toEqual(Array(2).fill([1, 2])))
  })

  // Handlers got the bytes of later messages. The native transport lends a Buffer, whose `slice` copies nothing.
  it('keep what they have to hand over though it was lent as a Buffer', async () => {
    const listeners = new LocalListeners(recordingLogger().logger)
    const received: unknown[] = []
    listeners.add({ pattern: 'k', group, handler: (payload) => received.push(payload) })
    const lent = Buffer.from('"a"')
    listeners.deliver([group], { key: 'k', payload: lent, isBinary: false })
    listeners.deliver([group], { key: 'k', payload: lent, isBinary: true })
    lent.fill(0)
    await vi.waitFor(() => expect(received).toEqual(['a', new Uint8Array([34, 97, 34])]))
  })

  // A client could write 80 bytes of log per byte: each text that is no JSON was an error line with a stack, as if a handler had failed.
  it('are told a gap for a text that is no JSON, with one line for many', async () => {
    const { logger, lines } = recordingLogger()
    const listeners = new LocalListeners(logger)
    const heard: unknown[] = []
    listeners.add({
      pattern: 'k',
      group,
      handler: (payload) => heard.push(payload),
      onGap: ({ reason }) => heard.push(reason),
    })
    const receive = vi.fn()
    listeners.add({ pattern: 'k', group, receive })
    for (const text of ['1', 'x', 'x', 'x', '', '2'])
      listeners.deliver([group], { key: 'k', payload: Buffer.from(text), isBinary: false })
    await vi.waitFor(() => expect(heard).toEqual([1, 'refused', 'refused', 'refused', undefined, 2]))
    expect(lines).toMatchObject([{ level: 'debug', message: 'a message for a local listener is not JSON' }])
    // Of the server itself: as it is.
    expect(receive.mock.calls.map(([{ payload }]) => Buffer.from(payload).toString())).toEqual([
      '1',
      'x',
      'x',
      'x',
      '',
      '2',
    ])
  })

  it('call nobody who has unlistened meanwhile', async () => {
    const listeners = new LocalListeners(recordingLogger().logger)
    const [gone, there] = [vi.fn(), vi.fn()]
    const listener = { pattern: 'k', group, handler: gone }
    listeners.add(listener)
    listeners.add({ pattern: 'k', group, handler: there })
    listeners.deliver([group], { key: 'k', payload: Uint8Array.of(49), isBinary: false })
    listeners.remove(listener)
    await vi.waitFor(() => expect(there).toHaveBeenCalledExactlyOnceWith(1, { key: 'k' }))
    expect(gone).not.toHaveBeenCalled()
  })

  it('tell a gap between the messages that it lies between, and only to those of its pattern', async () => {
    const { logger, lines } = recordingLogger()
    const listeners = new LocalListeners(logger)
    const heard: unknown[] = []
    listeners.add({ pattern: 'k', group, handler: (payload) => heard.push(payload), onGap: (gap) => heard.push(gap) })
    const other = vi.fn()
    listeners.add({ pattern: 'x', group: 2 as GroupId, handler: vi.fn(), onGap: other })
    listeners.add({ pattern: 'k', group, handler: vi.fn(), onGap: () => Promise.reject(new Error('handler')) })
    const deliver = (text: string) =>
      listeners.deliver([group], { key: 'k', payload: Buffer.from(text), isBinary: false })
    deliver('1')
    listeners.gap(group, 'broker-lost')
    deliver('2')
    await vi.waitFor(() => expect(heard).toEqual([1, { pattern: 'k', reason: 'broker-lost' }, 2]))
    expect(other).not.toHaveBeenCalled()
    await vi.waitFor(() => expect(lines).toMatchObject([{ level: 'error', fields: { pattern: 'k' } }]))
  })

  it('tell a gap to whoever has missed what there was no room for, before the next message', async () => {
    const listeners = new LocalListeners(recordingLogger().logger)
    const heard: unknown[] = []
    const handler = (payload: unknown) => heard.push((payload as Uint8Array).length)
    listeners.add({ pattern: 'k', group, handler, onGap: ({ reason }) => heard.push(reason) })
    const deliver = (size: number) =>
      listeners.deliver([group], { key: 'k', payload: new Uint8Array(size), isBinary: true })
    const half = 32 * 1_048_576
    // The last would find room, behind one that did not.
    for (const size of [half, half, 1]) deliver(size)
    await vi.waitFor(() => expect(heard).toEqual([half, 'slow-consumer']))
    deliver(2)
    await vi.waitFor(() => expect(heard).toEqual([half, 'slow-consumer', 2]))
    expect(listeners.droppedCount).toBe(2)
    // One that never fits.
    deliver(3 * half)
    await vi.waitFor(() => expect(heard.at(-1)).toBe('slow-consumer'))
  })
})
