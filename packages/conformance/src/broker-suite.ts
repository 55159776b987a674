import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BrokerCapabilities } from 'webmq-server/ports'
import { attributeTests } from './broker/attribute-tests.js'
import { bindingTests } from './broker/binding-tests.js'
import { BrokerHarness, type CreateBrokerSystem } from './broker/harness.js'
import { historyTests } from './broker/history-tests.js'
import { messageIdTests } from './broker/message-id-tests.js'
import { messageTests } from './broker/message-tests.js'
import { nodeTests } from './broker/node-tests.js'
import { stateTests } from './broker/state-tests.js'

export type { CreateBrokerSystem } from './broker/harness.js'

/**
 * The tests that every broker passes. They switch by the broker's capabilities, and check each of them.
 * For vitest; needs the `fast-check` package.
 *
 * @param name Names the broker in the report.
 * @param createSystem Makes a system of nodes for one test.
 * @param expected The capabilities that each of its nodes must report.
 */
export function brokerSuite(name: string, createSystem: CreateBrokerSystem, expected: BrokerCapabilities): void {
  describe(`broker ${name}`, () => {
    let current: BrokerHarness
    const harness = () => current

    beforeEach(async () => {
      current = new BrokerHarness(await createSystem())
    })

    afterEach(() => current.end())

    it('says what it can do, and is up once it has started', async () => {
      const { broker, sink } = await current.startNode()
      expect(broker.capabilities).toEqual(expected)
      expect(broker.name).not.toBe('')
      expect(sink.statuses.at(-1)).toBe('up')
      expect(sink.gaps).toEqual([])
    })

    bindingTests(harness)
    messageTests(harness, expected)
    nodeTests(harness, expected)
    historyTests(harness, expected)
    messageIdTests(harness, expected)
    stateTests(harness, expected)
    attributeTests(harness, expected)
  })
}
