import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { limitedSignal } from './limited-signal.js'

const HOUR_MS = 3_600_000

describe('limitedSignal', () => {
  it('aborts with the other signal', () => {
    const parent = new AbortController()
    using limited = limitedSignal(parent.signal, HOUR_MS)
    const { signal } = limited
    expect(signal.aborted).toBe(false)
    parent.abort(new Error('stopped'))
    expect(signal.reason).toEqual(new Error('stopped'))
    expect(limitedSignal(parent.signal, HOUR_MS).signal.aborted).toBe(true)
  })

  it('does nothing any more once it is released', () => {
    const parent = new AbortController()
    const limited = limitedSignal(parent.signal, HOUR_MS)
    const { signal } = limited
    limited[Symbol.dispose]()
    parent.abort()
    expect(signal.aborted).toBe(false)
  })

  // Attempts to connect to a server that says nothing went on for ever. Nothing but a composite signal referred to that with the
  // timer; Node 20 collected it as garbage, and the timer with it.
  it('aborts after its time, whatever garbage is collected meanwhile', async () => {
    setFlagsFromString('--expose_gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const onAbort = vi.fn()
    limitedSignal(new AbortController().signal, 100).signal.addEventListener('abort', onAbort)
    await vi.waitFor(() => {
      collectGarbage()
      expect(onAbort).toHaveBeenCalledOnce()
    })
  })
})
