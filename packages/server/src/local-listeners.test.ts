import { describe, expect, it, vi } from 'vitest'
import { recordingLogger } from '../test/fake-server.js'
import { LocalListeners } from './local-listeners.js'
import type { GroupId } from './transport.js'

const group = 1 as GroupId

describe('LocalListeners', () => {
  it('drop, count and log what handlers are too slow for, and go on', async () => {
    const { logger, lines } = recordingLogger()
    const listeners = new LocalListeners(logger)
    const handler = vi.fn()
    listeners.add({ group, handler })
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
    listeners.add({ group, handler: (payload) => received.push(payload) })
    const lent = Buffer.from('"a"')
    listeners.deliver([group], { key: 'k', payload: lent, isBinary: false })
    listeners.deliver([group], { key: 'k', payload: lent, isBinary: true })
    lent.fill(0)
    await vi.waitFor(() => expect(received).toEqual(['a', new Uint8Array([34, 97, 34])]))
  })

  it('call nobody who has unlistened meanwhile', async () => {
    const listeners = new LocalListeners(recordingLogger().logger)
    const [gone, there] = [vi.fn(), vi.fn()]
    const listener = { group, handler: gone }
    listeners.add(listener)
    listeners.add({ group, handler: there })
    listeners.deliver([group], { key: 'k', payload: Uint8Array.of(49), isBinary: false })
    listeners.remove(listener)
    await vi.waitFor(() => expect(there).toHaveBeenCalledExactlyOnceWith(1, { key: 'k' }))
    expect(gone).not.toHaveBeenCalled()
  })
})
