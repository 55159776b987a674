import { expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { run } from '../src/vite/run.js'

it('does not wait for ever for a program that answers elsewhere, or not at all', async () => {
  const server = run(['-e', 'setInterval(() => undefined, 1_000)'], () => undefined)
  onTestFinished(server.release)
  expect(await server.isSilent(`http://127.0.0.1:${await freePort()}`, 100)).toBe(true)
})
