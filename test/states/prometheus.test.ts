import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { freePort, obtainPrometheus, startRedis } from 'webmq-services'
import { ROOT } from '../deploy/files.js'
import { checkRow } from './cells.js'
import { PLAYS } from './plays.js'
import { type Stage, StageNode, startStageProcess } from './stage.js'
import { STATES, type StateName } from './table.js'

/** The test does not wait for minutes. */
const FOR = '2s'
const ALARM: StateName = 'the broker is blocked: memory alarm of RabbitMQ'
/** Prometheus sees a node before it goes. */
const LATE: ReadonlySet<StateName> = new Set(['gone', 'draining'])

const PLAYED = STATES.filter(({ state }) => state !== ALARM)

it(ALARM, async () => {
  const row = STATES.find(({ state }) => state === ALARM)
  if (row !== undefined) await checkRow(row, await PLAYS[ALARM]())
})

/** A Prometheus with the rules of `deploy`, whose `for` is short. */
async function startPrometheus(jobs: Readonly<Record<string, readonly Pick<Stage, 'admin'>[]>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-prometheus-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const rules = readFileSync(`${ROOT}deploy/prometheus/webmq.rules.yml`, 'utf8').replace(/for: \w+/g, `for: ${FOR}`)
  writeFileSync(join(folder, 'rules.yml'), rules)
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yml'],
    scrape_configs: Object.entries(jobs).map(([job_name, nodes]) => ({
      job_name,
      static_configs: [{ targets: nodes.map(({ admin }) => new URL(admin).host) }],
    })),
  }
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const { prometheus } = await obtainPrometheus()
  const address = `127.0.0.1:${await freePort()}`
  const flags = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`]
  const child = spawn(prometheus, [...flags, `--web.listen-address=${address}`], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  const url = `http://${address}`
  await vi.waitFor(async () => expect((await fetch(`${url}/-/ready`)).status).toBe(200), { interval: 200 })
  return url
}

interface Alert {
  readonly state: string
  readonly labels: { readonly alertname: string; readonly job?: string }
  readonly annotations: { readonly summary: string }
}

async function firing(url: string): Promise<readonly Alert[]> {
  const response = await fetch(`${url}/api/v1/alerts`)
  const { data } = (await response.json()) as { readonly data: { readonly alerts: readonly Alert[] } }
  return data.alerts.filter(({ state }) => state === 'firing')
}

/** Tells how busy the machine of the tests is. */
const OF_MACHINE = 'WebMQEventLoopLag'

it('a Prometheus raises the alerts of each state for the job that is in it, and none for another', async () => {
  const stages = new Map<StateName, Stage>()
  for (const { state } of PLAYED) if (!LATE.has(state)) stages.set(state, await PLAYS[state]())
  const [healthy, gone, draining] = await Promise.all([
    StageNode.start(),
    StageNode.start(),
    startStageProcess(['--drain-delay', '10m']),
  ])
  const ofStages = Object.fromEntries([...stages].map(([state, stage]) => [state, [stage]]))
  const url = await startPrometheus({ ...ofStages, healthy: [healthy], gone: [gone], draining: [draining] })
  await seenBy(url, stages.size)
  await gone.server.stop({ drainMs: 0, delayMs: 0 })
  void draining.kill('SIGTERM')
  await Promise.all([...stages.values()].map((stage) => stage.words()))
  const wanted = PLAYED.flatMap(({ state, alerts }) => alerts.map((alert) => `${state}: ${alert}`))
  const alerts = await vi.waitFor(
    async () => {
      const found = await firing(url)
      const names = found.map(({ labels }) => `${labels.job}: ${labels.alertname}`)
      expect(wanted.filter((name) => !names.includes(name))).toEqual([])
      return found
    },
    { interval: 1_000, timeout: 60_000 },
  )
  const ofHealthy = alerts.filter(({ labels }) => labels.job === 'healthy' && labels.alertname !== OF_MACHINE)
  expect(ofHealthy).toEqual([])
  for (const { annotations } of alerts) expect(annotations.summary).not.toMatch(/<no value>|\{\{/)
})

it('an outage of the broker of three nodes is one alert', async () => {
  const redis = await startRedis({ isPrivate: true })
  onTestFinished(() => redis.stop())
  const nodes = await Promise.all([1, 2, 3].map(() => StageNode.start({ broker: redis.url })))
  const url = await startPrometheus({ chat: nodes })
  await seenBy(url, nodes.length)
  await redis.kill()
  const summary = '3 nodes of chat have no broker'
  await vi.waitFor(
    async () => {
      const alerts = (await firing(url)).filter(({ labels }) => labels.alertname !== OF_MACHINE)
      expect(alerts.map(({ annotations }) => annotations.summary)).toEqual([summary])
    },
    { interval: 500, timeout: 30_000 },
  )
})

async function seenBy(url: string, jobCount: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const response = await fetch(
        `${url}/api/v1/query?query=${encodeURIComponent('count(webmq_node_status{status="ok"})')}`,
      )
      const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } }
      expect(Number(data.result[0]?.value[1])).toBeGreaterThanOrEqual(jobCount)
    },
    { interval: 500, timeout: 30_000 },
  )
}
