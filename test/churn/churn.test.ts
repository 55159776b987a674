import { expect, it } from 'vitest'
import { main } from './main.js'

/** `npm run test:churn` plays fifteen minutes with each broker. */
const LOAD = ['--seconds', '6', '--rest', '8', '--actors', '4', '--broker', 'memory']

it('leaves nothing at a node when connections, groups, presence and streams have come and gone', async () => {
  expect(await main(LOAD)).toBe(0)
})

it('says what its options are, and knows no others', async () => {
  expect(await main(['--help'])).toBe(0)
  expect(await main(['--brokers', 'memory'])).toBe(2)
  expect(await main(['--broker', 'kafka'])).toBe(2)
  expect(await main(['--minutes', 'many'])).toBe(2)
})
