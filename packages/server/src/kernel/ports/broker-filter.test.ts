import { expect, expectTypeOf, it } from 'vitest'
import type { Broker } from './broker.js'
import { BrokerFilter } from './broker-filter.js'

class Forwarding extends BrokerFilter {}

/** Every member of the port. The compiler asks for each new one here. */
const MEMBERS: Readonly<Record<keyof Broker, readonly unknown[] | 'value'>> = {
  name: 'value',
  capabilities: 'value',
  room: 'value',
  log: 'value',
  start: [{}],
  bind: ['a.*'],
  unbind: ['a.*'],
  publish: [{ key: 'a' }],
  publishBatch: [[{ key: 'a' }]],
  read: [{ last: 1 }, ['a'], { isClosed: false }],
  logs: ['a'],
  retains: ['a'],
  position: [],
  reachEnd: [],
  stats: [],
  setAddress: ['tcp://b'],
  stop: [500],
}

function fakeBroker(members: readonly string[]): Broker {
  const broker: Record<string, unknown> = {}
  for (const [member, args] of Object.entries(MEMBERS)) {
    if (!members.includes(member)) continue
    broker[member] = args === 'value' ? { member } : (...given: unknown[]) => ({ member, given })
  }
  return broker as unknown as Broker
}

it('has every member of the port', () => {
  expectTypeOf<Exclude<keyof Broker, keyof BrokerFilter>>().toBeNever()
})

it.each(Object.entries(MEMBERS).filter(([member]) => member !== 'setAddress'))(
  'forwards %s with all its arguments',
  (member, args) => {
    const filter = new Forwarding(fakeBroker(Object.keys(MEMBERS))) as unknown as Record<string, unknown>
    if (args === 'value') expect(filter[member]).toEqual({ member })
    else expect((filter[member] as (...given: unknown[]) => unknown)(...args)).toEqual({ member, given: args })
  },
)

it('forwards setAddress, which answers nothing', () => {
  const addresses: string[] = []
  const broker = { ...fakeBroker(Object.keys(MEMBERS)), setAddress: (address: string) => void addresses.push(address) }
  new Forwarding(broker).setAddress('tcp://b')
  expect(addresses).toEqual(['tcp://b'])
})

it('has publishBatch and reachEnd only if the broker has them, and sets no address of a broker without one', () => {
  const filter = new Forwarding(fakeBroker(['name', 'publish']))
  expect(filter.publishBatch).toBeUndefined()
  expect(filter.reachEnd).toBeUndefined()
  expect([filter.logs('a'), filter.retains('a')]).toEqual([false, false])
  expect(() => filter.setAddress('tcp://b')).not.toThrow()
})
