import { afterEach, expect, it, vi } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import { request } from './index.js'

afterEach(() => {
  vi.useRealTimers()
})

it.each([3_600_000, -3_600_000])(
  'a request keeps its time when the clock of the device is set by %i ms',
  async (ms) => {
    vi.useFakeTimers()
    const { client, server } = createTestClient()
    server.isUp = false
    const asked = request('sum', [1], { client, timeoutMs: 60_000 }).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(100)
    vi.setSystemTime(Date.now() + ms)
    server.isUp = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await asked).toMatchObject({ code: 'E_NO_RESPONDERS' })
    const [sent] = server.received.filter(({ verb }) => verb === 'request')
    expect(sent).toMatchObject({ withinMs: expect.closeTo(55_000, -4) })
  },
)
