import { expect, it, vi } from 'vitest'
import { createRunRecord } from '../../../packages/check/src/judging/record.js'
import { ClientStreamWriter } from './client-stream-writer.js'
import type { Drive } from './drive.js'

// Symptom: NATS seed 502 with the client for Go: an append was missing that counted as acknowledged. Cause: its append returns
// before the log has it.
it.each([
  [true, [true, false]],
  [false, [true, true]],
])(
  'takes an append that is buffered (%s) for acknowledged once its client has an answer',
  async (isBuffered, acked) => {
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const call = async ({ do: command }: { readonly do: string }) => {
      if (command === 'waitStopped') return await new Promise(() => undefined)
      if (command === 'endStream') await ended
      return command === 'append' ? { isBuffered } : {}
    }
    const record = createRunRecord()
    const failed = vi.fn()
    const writer = new ClientStreamWriter({
      name: 'w',
      key: 'k',
      record,
      chooseNode: () => undefined,
      nowMs: () => performance.now(),
      random: () => 0.5,
      drive: { adapter: { call }, prefix: '', failed } as unknown as Drive,
    })
    writer.start()
    const writes = () => record.streams[0]?.writes ?? []
    await vi.waitFor(() => expect(writes().map(({ kind }) => kind)).toContain('append'))
    writer.pause()
    await vi.waitFor(() => expect(writes().at(-1)?.kind).toBe('end'))
    const isAcked = () => writes().map(({ ackedAtMs }) => ackedAtMs !== undefined)
    expect(isAcked().slice(0, 2)).toEqual(acked)
    expect(isAcked().at(-1)).toBe(false)
    end()
    await vi.waitFor(() => expect(isAcked()).not.toContain(false))
    await writer.stop()
    expect(failed).not.toHaveBeenCalled()
  },
)
