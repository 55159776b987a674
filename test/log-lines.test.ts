import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

// A client could write 80 bytes of log per byte that it sent: a line with a stack for each message that a handler did not understand.

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/**
 * Calls that write a line of level `warn` or `error`, by file: how many, and what bounds their lines, whoever causes them. What a
 * client may cause goes through `logBug` or `logPaced`, and has no row.
 */
const BOUNDED: Readonly<Record<string, readonly [number, string]>> = {
  'outbox-postgres/src/outbox.ts': [1, 'LogPace'],
  'server/src/adapters/brokers/mesh/dialers.ts': [2, 'once per address and reason'],
  'server/src/adapters/brokers/mesh/listener.ts': [2, 'LogPace'],
  'server/src/adapters/brokers/mesh/peers.ts': [5, 'links of nodes that have authenticated'],
  'server/src/doors/cli/reload.ts': [1, 'a reload'],
  'server/src/doors/cli/send-traces.ts': [1, 'LogPace'],
  'server/src/doors/cli/serve.ts': [5, 'the start'],
  'server/src/doors/http/frontend.ts': [1, 'the start of the admin port'],
  'server/src/doors/in-process/server.ts': [1, 'a reload'],
  'server/src/features/certificates/store.ts': [4, 'a change of the files, and each day'],
  'server/src/features/hooks/chain.ts': [1, 'LogPace'],
  'server/src/features/hooks/webhooks/webhook.ts': [2, 'LogPace; the breaker stays open for a second or longer'],
  'server/src/features/nodes/nodes.ts': [1, 'the start'],
  'server/src/features/nodes/peers.ts': [1, 'once per node'],
  'server/src/features/observing/audit/log.ts': [2, 'LogPace; the stop'],
  'server/src/features/observing/health/broker-watch.ts': [4, 'a pause between losses of the broker'],
  'server/src/features/observing/health/full-watch.ts': [1, 'LogPace'],
  'server/src/features/observing/health/state-log.ts': [1, 'states of the node that last'],
  'server/src/features/observing/incident-log.ts': [1, 'LogPace for each kind'],
  'server/src/features/observing/tracing/tracer.ts': [1, 'the start'],
  'server/src/features/operators/cluster.ts': [1, 'messages about revocations, which operators cause'],
  'server/src/features/presence/occupancy/occupancy.ts': [1, 'LogPace'],
  'server/src/features/queue-groups/queue-groups.ts': [1, 'LogPace'],
  'server/src/features/streams/roll-ups.ts': [1, 'once'],
  'server/src/features/streams/shared-streams.ts': [1, 'LogPace'],
  'server/src/features/streams/streams.ts': [1, 'once'],
  'server/src/kernel/base/log-bug.ts': [1, 'LogPace for each message'],
  'server/src/kernel/identity/jwks.ts': [1, 'a fetch of keys: one in five seconds'],
  'server/src/kernel/node/endpoint.ts': [1, 'the start'],
  'server/src/kernel/node/lifecycle.ts': [1, 'a failed start'],
  'server/src/kernel/node/node.ts': [3, 'the start and the stop'],
  'server/src/kernel/node/rooms.ts': [1, 'the waiting room: LogPace'],
  'server/src/kernel/node/stop-list.ts': [1, 'the stop'],
  'server/src/kernel/routing/refused-messages.ts': [1, 'LogPace'],
  'server/src/kernel/session/gateway/gateway.ts': [1, 'LogPace'],
  'server/src/kernel/session/gateway/refused-origins.ts': [1, '100 origins per hour'],
}

const PACKAGES = ['server', 'broker-nats', 'broker-rabbitmq', 'broker-redis', 'outbox-postgres']
const LINE = /[lL]og(?:ger)?\??\.(?:warn|error)\(|[lL]og(?:ger)?\[level\]\(/g

it('each line of level warn or error has a bound that somebody has thought of', () => {
  expect("logger.warn({}, 'a'); this.#log.error(b); options.logger[level](c)".match(LINE)).toHaveLength(3)
  const folders = PACKAGES.map((name) => `packages/${name}/src/`)
  const found = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...folders], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((file) => /(?<!\.test)\.ts$/.test(file) && existsSync(ROOT + file))
    .map((file) => [file.slice('packages/'.length), readFileSync(ROOT + file, 'utf8').match(LINE)?.length] as const)
  expect(found.length).toBeGreaterThan(300)
  const expected = Object.entries(BOUNDED).map(([file, [count]]) => [file, count])
  expect(Object.fromEntries(found.filter(([, count]) => count !== undefined))).toEqual(Object.fromEntries(expected))
})
