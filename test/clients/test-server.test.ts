import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import type { Case } from '../../packages/conformance/src/client/case.js'
import { runCase } from '../../packages/conformance/src/client/run-case.js'
import { readCases } from '../../packages/conformance/src/client/run-cases.js'
import { ROOT } from '../deploy/files.js'
import { CLIENTS, MISSING, type TestedClient } from './adapters.js'
import { MISSING_OPTION, testServers } from './test-server-door.js'

/** A case has pauses of five seconds at most, and a busy machine takes its time. */
const CASE_MS = 60_000

/** Cases that do not apply to the server of `webmq-client/testing`, and why. Those whose server is played try clients alone. */
const NOT_APPLICABLE: Readonly<Record<string, string>> = {
  'publishes beyond the rate are sent again, in their order':
    "it has no rates, as no time passes in it: refuse('publish', 'E_RATE_LIMIT') refuses one",
  'a silent writer says that it is there; one that is gone is told as lost':
    'it has no leases, as no time passes in it: loseStream ends a stream as lost',
}

const cases = (await readCases()).filter(({ server }) => server?.played === undefined)
const applicable = cases.filter(({ name }) => NOT_APPLICABLE[name] === undefined)

/** The first client that can. */
const playerOf = ({ needs = [] }: Case) => CLIENTS.find(({ cannot }) => !needs.some((need) => cannot.includes(need)))

it('leaves out no case but those in the table', () => {
  const names = cases.map(({ name }) => name)
  expect(Object.keys(NOT_APPLICABLE).filter((name) => !names.includes(name))).toEqual([])
  expect(applicable.length).toBeGreaterThan(40)
})

const ownCases = (client: TestedClient) => applicable.filter((played) => playerOf(played) === client)

describe.each(CLIENTS.filter((client) => ownCases(client).length > 0))(
  'the server of webmq-client/testing, played by $name',
  (client: TestedClient) => {
    let adapter: Adapter

    beforeAll(async () => {
      adapter = new Adapter(client.command, ROOT, client.env)
      await adapter.hello
    })
    afterAll(() => adapter.stop())

    for (const played of ownCases(client)) {
      it(`${played.name} [${played.clauses.join(', ')}]`, () => runCase(played, adapter, testServers()), CASE_MS)
    }
    for (const left of cases.filter(({ name }) => client === CLIENTS[0] && NOT_APPLICABLE[name] !== undefined)) {
      it(`has not what this asks for: ${left.name}`, async () => {
        await expect(runCase(left, adapter, testServers())).rejects.toThrow(MISSING_OPTION)
      })
    }
  },
)

for (const played of applicable) {
  if (playerOf(played) === undefined)
    it.skip(`${played.name}: no client here can: ${MISSING.join(', ')}`, () => undefined)
}
