import { expect, it } from 'vitest'
import { main } from './main.js'

/** `npm run test:doors` plays an hour of it with every broker. */
const SECONDS = 12

it('leaves a node as it was, whatever comes through its doors', async () => {
  const seed = process.env.WEBMQ_TEST_SEED === undefined ? [] : ['--seed', process.env.WEBMQ_TEST_SEED]
  const load = ['--seconds', `${SECONDS}`, '--quiet', '2', '--rate', '40', '--broker', 'memory', '--no-outbox']
  expect(await main([...load, ...seed])).toBe(0)
})

it('says what its options are, and knows no others', async () => {
  expect(await main(['--help'])).toBe(0)
  expect(await main(['--brokers', 'memory'])).toBe(2)
  expect(await main(['--broker', 'kafka'])).toBe(2)
  expect(await main(['--minutes', 'many'])).toBe(2)
})
