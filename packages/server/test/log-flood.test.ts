import { expect, it } from 'vitest'
import { ApiServer } from './api-server.js'

const FAILURES = 1_000

// Symptom: 60 bytes of a client wrote 800 bytes of log. Cause: a handler of the application that fails had a line for each message.
it('messages that break handlers of the application write a line per second, which counts the others', async () => {
  const api = await ApiServer.start()
  const { server, log } = api
  let failedCount = 0
  const fail = (payload: unknown) => {
    failedCount++
    return (payload as { text: string }).text.length
  }
  await server.listen('chat.#', fail).ready
  await server.listen('chat.#', async (payload) => fail(payload)).ready
  await server.listen('chat.#', fail, { group: 'workers' }).ready
  const messages = Array.from({ length: FAILURES }, () => ({ key: 'chat.1', payload: null }))
  const fromMs = performance.now()
  expect(await api.ask('/api/publish/batch', { body: { messages } })).toMatchObject({ status: 200 })
  await expect.poll(() => failedCount).toBe(3 * FAILURES)
  const seconds = Math.ceil((performance.now() - fromMs) / 1_000)
  await server.stop({ drainMs: 0 })
  const lines = log.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
  expect(new Set(lines)).toEqual(new Set(['a local listener failed', 'a member of a queue group failed']))
  expect(lines.length).toBeLessThanOrEqual(2 * (seconds + 1))
})
