import { expect, it } from 'vitest'
import { main } from './main.js'

/** `npm run test:deploys` plays two hours with each broker. */
const LOAD = [
  '--seconds',
  '30',
  '--every',
  '10',
  '--rest',
  '15',
  '--broker',
  'redis',
  '--publishers',
  '4',
  '--listeners',
  '3',
  '--log',
  '50000',
]

it('loses and doubles nothing, and leaves nothing, while all nodes are replaced under a steady load', async () => {
  expect(await main(LOAD)).toBe(0)
}, 180_000)

it('says what its options are, and knows no others', async () => {
  expect(await main(['--help'])).toBe(0)
  expect(await main(['--broker', 'memory'])).toBe(2)
  expect(await main(['--every', '0'])).toBe(2)
})
