import { loadPackage } from '../../../../kernel/base/load-library.js'
import { reasonOf } from '../../../../kernel/base/reason.js'
import { ask, checkClock, jsonOf } from '../health.js'
import { type DoctorTarget, type Finding, failure, ok, parseServerUrl, skipped, whyOf } from '../target.js'
import type { ProductionFolder } from './folder.js'
import { checkRabbitmq } from './rabbitmq.js'
import { blocksOf } from './read-value.js'

const PROMETHEUS = 'http://127.0.0.1:9090'
const NODE_COUNT = 3

/** What the programs of the installation say of themselves, where this machine reaches them. */
export async function checkRunning(folder: ProductionFolder, timeoutMs: number): Promise<readonly Finding[]> {
  const at = (url: string): DoctorTarget => ({
    ...parseServerUrl(url),
    ...{ origin: undefined, token: undefined, ca: undefined, idleMs: undefined, timeoutMs },
  })
  const job = blocksOf(folder.text('prometheus/prometheus.yml'), /^\s*- job_name: "?webmq"?$/).join('\n')
  const addresses = [...job.matchAll(/- targets: \[(.*)\]/g)].join()
  const nodes =
    folder.kind === 'systemd' ? [...addresses.matchAll(/"([^"]+)"/g)].map(([, place]) => `http://${place}`) : []
  const findings = await Promise.all([
    ...nodes.map((url) => checkNode(at(url), folder)),
    ...(nodes[0] === undefined ? [] : [checkCluster(at(nodes[0]), folder)]),
    checkPrometheus(at(PROMETHEUS), folder),
    checkRedis(folder, timeoutMs),
    checkRabbitmq(folder, at),
  ])
  return findings.flat()
}

async function checkNode(target: DoctorTarget, { options }: ProductionFolder): Promise<readonly Finding[]> {
  const check = `node ${target.port}`
  try {
    const sentMs = Date.now()
    const ready = await ask(target, '/ready')
    const { status } = jsonOf(ready)
    const clock = checkClock(ready.headers.date, (sentMs + Date.now()) / 2)
    const metrics = await ask(target, '/metrics')
    const [, files = '0'] = /^process_max_fds (\S+)$/m.exec(metrics.body) ?? []
    const findings: Finding[] = clock.status === 'ok' ? [] : [{ ...clock, check }]
    if (ready.status !== 200) findings.push(failure(check, `it is not ready: ${String(status)}`, 'Look at its log.'))
    if (Number(files) <= (options?.maxConnections ?? 0))
      findings.push(
        failure(
          check,
          `it may open ${files} files, fewer than maxConnections`,
          'Restart it with the limit of its unit.',
        ),
      )
    if (/^webmq_broker_status\{[^}]*status="up"[^}]*\} 0$/m.test(metrics.body))
      findings.push(failure(check, 'its broker is away or full', 'Look at broker in /ready, and at the log.'))
    return findings.length > 0 ? findings : [ok(check, `it is ready, and may open ${files} files`)]
  } catch (error) {
    return [failure(check, `its admin port does not answer (${whyOf(error)})`, 'Start the node, and look at its log.')]
  }
}

async function checkCluster(target: DoctorTarget, folder: ProductionFolder): Promise<readonly Finding[]> {
  try {
    const anonymous = await ask(target, '/api/info')
    if (anonymous.status === 200)
      return [failure('cluster', 'the admin port answers operators without an API key', 'Set apiKeys by a file.')]
    const answer = await ask(target, '/api/info', { authorization: `Bearer ${folder.secret('api-key')}` })
    if (answer.status !== 200)
      return [
        failure(
          'cluster',
          `the API key of the folder gets ${answer.status}`,
          'The nodes have another key: restart them.',
        ),
      ]
    const { nodes, missing } = jsonOf(answer)
    const count = Array.isArray(nodes) ? nodes.length : 0
    const silent = Array.isArray(missing) ? missing.length : 0
    if (count >= NODE_COUNT && silent === 0) return [ok('cluster', `${count} nodes see each other`)]
    const advice = 'Start the others; give all the same broker and namespace.'
    return [failure('cluster', `a node sees ${count} nodes, itself included, and ${silent} do not answer`, advice)]
  } catch (error) {
    return [failure('cluster', `no node answers (${whyOf(error)})`, 'Start the nodes.')]
  }
}

/** The jobs of Prometheus, and the processes that each asks: three. */
const WATCHED: Readonly<Record<string, string>> = { webmq: 'nodes', rabbitmq: 'servers of RabbitMQ' }

async function checkPrometheus(target: DoctorTarget, { kind, text }: ProductionFolder): Promise<readonly Finding[]> {
  const jobs = ['webmq', ...(text('prometheus/rabbitmq.rules.yml') === '' ? [] : ['rabbitmq'])]
  const files = jobs.map((job) => text(`prometheus/${job}.rules.yml`))
  const wanted = [...files.join('\n').matchAll(/- alert:/g)].length
  try {
    const rules = await ask(target, '/api/v1/rules?type=alert')
    const loaded = rules.body.match(/"name":"(WebMQ|RabbitMQ)\w+"/g)?.length ?? 0
    const findings: Finding[] = []
    if (loaded < wanted)
      findings.push(
        failure('monitoring', `Prometheus has ${loaded} of the ${wanted} alerts`, 'Look at rule_files, and reload it.'),
      )
    for (const job of jobs) {
      const sum = await ask(target, `/api/v1/query?query=${encodeURIComponent(`sum(up{job="${job}"})`)}`)
      const up = Number(/"value":\[[\d.]+,"(\d+)"\]/.exec(sum.body)?.[1] ?? 0)
      if (up < NODE_COUNT)
        findings.push(
          failure(
            'monitoring',
            `Prometheus reaches ${up} of ${NODE_COUNT} ${WATCHED[job]}`,
            'Compare its targets with their ports.',
          ),
        )
    }
    return findings.length > 0
      ? findings
      : [ok('monitoring', `${loaded} alerts, and all ${jobs.map((job) => WATCHED[job]).join(' and ')}`)]
  } catch (error) {
    const reason = `Prometheus does not answer at ${PROMETHEUS} (${whyOf(error)})`
    return [kind === 'helm' ? skipped('monitoring', reason) : failure('monitoring', reason, 'Start it.')]
  }
}

/** What Redis must run with, whatever stands in its file. */
const REDIS: Readonly<Record<string, string>> = {
  appendonly: 'yes',
  appendfsync: 'always',
  'maxmemory-policy': 'noeviction',
  aof_last_write_status: 'ok',
}

type ReadSettings = (
  url: string,
  names: readonly string[],
  timeoutMs: number,
) => Promise<Readonly<Record<string, string>>>

/** Asks Redis for the settings that it runs with. Only where it is on this machine. */
async function checkRedis({ kind, secret }: ProductionFolder, timeoutMs: number): Promise<readonly Finding[]> {
  const address = secret('broker')
  if (kind !== 'systemd' || !address.startsWith('redis:')) return []
  try {
    const user = 'the check of the settings of Redis'
    const importPackage = () => import('webmq-broker-redis' as string)
    const read = await loadPackage(
      { packageName: 'webmq-broker-redis', exportName: 'readRedisSettings', importPackage },
      user,
    )
    const settings = await (read as ReadSettings)(address, Object.keys(REDIS), timeoutMs)
    const wrong = Object.keys(REDIS).filter((name) => settings[name] !== REDIS[name])
    if (wrong.length === 0) return [ok('redis', 'it runs with the settings of its file')]
    return [
      failure(
        'redis',
        `it runs with another ${wrong.join(', ')}`,
        'Restart it with redis.conf; CONFIG SET has changed it.',
      ),
    ]
  } catch (error) {
    if (/^(WRONGPASS|NOAUTH|ERR .*AUTH)/.test(reasonOf(error)))
      return [failure('redis', 'it refuses the password of secrets/broker', 'Restart it after a change.')]
    return [failure('redis', `it does not tell its settings: ${reasonOf(error)}`, 'Start it, and look at its log.')]
  }
}
