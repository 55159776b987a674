import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it, vi } from 'vitest'
import { postgresOutbox } from 'webmq-outbox-postgres'
import { FakeServer } from '../../../test/fake-server.js'
import { FaultyBroker } from '../../../test/faulty-broker.js'
import { NO_TOKEN_FAILURES } from '../../kernel/identity/token-failure.js'
import { VERSION } from '../../kernel/node/version.js'
import { SessionTable } from '../../kernel/session/table.js'
import { metricsPage, metricsText } from './page.js'
import { METRICS } from './table.js'

/** The samples of a page, by name and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

async function pageOf(fake: FakeServer): Promise<Map<string, number>> {
  const source = {
    node: 'n',
    version: VERSION,
    broker: fake.broker.name,
    status: 'ok',
    stats: fake.server.stats(),
  } as const
  return samplesOf((await metricsPage(() => source)).text)
}

/** Absent without TLS, an audit log, a webhook and a database. */
const WITH_AN_OPTION = [
  'webmq_tls_certificate_expiration_timestamp_seconds',
  'webmq_tls_reloads_total',
  'webmq_tls_certificate_refused',
  'webmq_audit_lines_total',
  'webmq_audit_lines_waiting_bytes',
  'webmq_log_lines_total',
  'webmq_log_lines_waiting_bytes',
  'webmq_webhook_breaker',
  'webmq_webhook_breaker_opened_total',
  'webmq_webhook_ignored_total',
  'webmq_webhook_notices_total',
  'webmq_webhook_dropped_total',
  'webmq_webhook_waiting',
  'webmq_occupancy_patterns',
  'webmq_occupancy_waiting',
  'webmq_occupancy_dropped_total',
  'webmq_outbox_status',
  'webmq_outbox_rows',
  'webmq_outbox_lag_seconds',
  'webmq_outbox_failed_rows',
  'webmq_outbox_published_total',
  'webmq_outbox_duplicates_total',
  'webmq_outbox_failed_total',
  'webmq_outbox_lost_total',
]
const LABELS = ['version', 'node', 'broker', 'status', 'code', 'reason', 'outcome', 'hook']

describe('Metrics', () => {
  it('count what the node does, and say how its broker is', async () => {
    const broker = new FaultyBroker()
    const fake = await FakeServer.start({ maxPayloadBytes: 10 }, { broker })
    const client = await fake.listener('a', 'b')
    broker.deliver('a', 1)
    client.send({ verb: 'publish', id: '1', key: 'b', echo: true, payload: '"too long for it"' })
    client.send({ verb: 'publish', id: '2', key: 'b', echo: true, payload: '1' })
    await fake.settled()
    broker.lose()
    broker.recover()
    broker.lose()
    client.send({ verb: 'publish', id: '3', key: 'b', echo: true, payload: '12' })
    await fake.settled()
    const samples = await pageOf(fake)
    expect(Object.fromEntries(samples)).toMatchObject({
      [`webmq_build_info{version="${VERSION}",node="n",broker="faulty"}`]: 1,
      webmq_connections: 1,
      webmq_patterns: 2,
      webmq_client_messages_total: 5,
      'webmq_refused_total{code="E_PAYLOAD_TOO_LARGE"}': 1,
      webmq_routed_total: 2,
      'webmq_gaps_total{reason="broker-lost"}': 2,
      'webmq_broker_status{status="up"}': 0,
      'webmq_broker_status{status="blocked"}': 0,
      'webmq_broker_status{status="down"}': 1,
      webmq_broker_accepted_total: 1,
      webmq_broker_received_total: 1,
      webmq_broker_lost_total: 2,
      webmq_broker_pending_messages: 1,
      webmq_broker_pending_bytes: 2,
      webmq_transport_accepted_total: 1,
    })
    expect(samples.get('webmq_broker_away_seconds_total')).toBeGreaterThan(0)
    expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0)
    broker.recover()
    await fake.server.stop()
  })

  it('are read anew for every page, and every metric of the table is there', async () => {
    const fake = await FakeServer.start({ retain: ['prices.#'] })
    const page = () =>
      metricsPage(() => ({ node: 'n', version: '1', broker: 'memory', status: 'ok', stats: fake.server.stats() }))
    const [first, second] = await Promise.all([page(), page()])
    expect(samplesOf(first.text).get('webmq_connections')).toBe(0)
    expect(second.contentType).toMatch(/^text\/plain; version=0\.0\.4/)
    await fake.connect()
    const { text } = await page()
    expect(samplesOf(text).get('webmq_connections')).toBe(1)
    for (const { name, type, help } of METRICS) {
      if (WITH_AN_OPTION.includes(name)) continue
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`)
    }
    await fake.server.stop()
  })

  it('have every label value from the start, because an alert on a rate misses the first count of a new series', async () => {
    const fake = await FakeServer.start()
    const samples = await pageOf(fake)
    for (const { name, type, labels, values = [] } of METRICS) {
      if (labels.length === 0 || WITH_AN_OPTION.includes(name)) continue
      const own = [...samples.keys()].filter((key) => key.startsWith(`${name}{`) || key.startsWith(`${name}_count{`))
      expect(own, name).not.toEqual([])
      const suffix = type === 'histogram' ? '_count' : ''
      for (const value of values) expect(samples.get(`${name}${suffix}{${labels[0]}="${value}"}`), value).toBe(0)
      if (type === 'counter') for (const key of own) expect(samples.get(key), key).toBe(0)
    }
    await fake.server.stop()
  })

  it('have histograms whose buckets grow to the count', async () => {
    const fake = await FakeServer.start()
    const client = await fake.listener('a')
    for (let id = 0; id < 3; id++) client.send({ verb: 'publish', id: `${id}`, key: 'a', echo: true, payload: '1' })
    await fake.settled()
    const samples = await pageOf(fake)
    expect(samples.get('webmq_publish_duration_seconds_bucket{le="+Inf"}')).toBe(
      samples.get('webmq_publish_duration_seconds_count'),
    )
    expect(samples.get('webmq_publish_duration_seconds_count')).toBeGreaterThan(0)
    expect(samples.get('webmq_delivery_lag_seconds_count')).toBeGreaterThan(0)
    expect(samples.get('webmq_broker_publish_duration_seconds_sum')).toBeGreaterThan(0)
    expect(samples.get('webmq_hook_duration_seconds_bucket{hook="publish",le="0.001"}')).toBe(0)
    await fake.server.stop()
  })

  it('count users, listens, closes, resumes, refused upgrades and refused tokens', async () => {
    const verifier = {
      verify: (userId: string) => Promise.resolve({ userId, grants: [{ keys: ['#'], allow: ['listen'] as const }] }),
      close: () => undefined,
      failureCounts: { ...NO_TOKEN_FAILURES, expired: 2 },
    }
    const fake = await FakeServer.start({}, { verifier })
    const alice = { headers: { authorization: 'Bearer alice' } }
    const [first, second] = [await fake.connect(alice), await fake.connect(alice)]
    await fake.connect({ headers: { ...alice.headers, origin: 'https://evil.example' } })
    const position = (await fake.position()) ?? ''
    second.send({ verb: 'listen', id: '1', pattern: 'a', since: position })
    second.send({ verb: 'listen', id: '2', pattern: 'b', since: 'other:1' })
    await fake.settled()
    first.drop(4321)
    await fake.settled()
    expect(Object.fromEntries(await pageOf(fake))).toMatchObject({
      webmq_users: 1,
      webmq_listens: 2,
      'webmq_closes_total{code="other"}': 1,
      'webmq_closes_total{code="4008"}': 0,
      'webmq_resumes_total{outcome="recovered"}': 1,
      'webmq_resumes_total{outcome="gap"}': 1,
      'webmq_refused_upgrades_total{code="E_ORIGIN_FORBIDDEN"}': 1,
      'webmq_token_failures_total{reason="expired"}': 2,
      'webmq_token_failures_total{reason="missing"}': 0,
      webmq_log_messages: 0,
      webmq_log_lag_seconds: 0,
    })
    await fake.server.stop()
  })

  it('are as promtool wants them', async ({ skip }) => {
    if (spawnSync('promtool', ['--version']).error !== undefined) {
      console.info('metrics are not checked by promtool: install the Debian package prometheus')
      skip()
    }
    const fake = await FakeServer.start()
    const source = {
      node: 'n',
      version: VERSION,
      broker: fake.broker.name,
      status: 'ok',
      stats: fake.server.stats(),
    } as const
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: metricsText(METRICS, source),
      encoding: 'utf8',
    })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
    await fake.server.stop()
  })

  it('read no connection, however many there are', async () => {
    // Symptom: a scrape took 30 ms at 15,000 connections. Cause: it went through all sessions to sum up their listens.
    const fake = await FakeServer.start()
    const clients = [await fake.listener('a'), await fake.listener('a', 'b'), await fake.listener('c')]
    const values = vi.spyOn(SessionTable.prototype, Symbol.iterator)
    expect((await pageOf(fake)).get('webmq_listens')).toBe(4)
    clients[1]?.send({ verb: 'unlisten', id: '9', pattern: 'b' })
    clients[2]?.drop(1000)
    await fake.settled()
    expect((await pageOf(fake)).get('webmq_listens')).toBe(2)
    expect(values).not.toHaveBeenCalled()
    values.mockRestore()
    await fake.server.stop()
  })

  it('of the process are those of the package prom-client', async () => {
    const register = new Registry()
    collectDefaultMetrics({ register })
    await metricsPage(() => undefined)
    const { text } = await metricsPage(() => undefined)
    const head = (page: string) => page.split('\n').filter((line) => /^# (HELP|TYPE)/.test(line))
    // Node tells nobody of handles and requests.
    const has = (name: string) => head(text).some((line) => line.startsWith(`# TYPE ${name} `))
    const expected = head(await register.metrics()).filter((line) => !/nodejs_active_(handles|requests)/.test(line))
    expect(head(text)).toEqual(expect.arrayContaining(expected))
    expect(has('process_open_fds')).toBe(process.platform === 'linux')
    const labels = (page: string) =>
      page.split('\n').flatMap((line) => /^(nodejs_(?!gc|active)\w+\{[^}]*\})/.exec(line)?.[1] ?? [])
    expect(labels(text)).toEqual(labels(await register.metrics()))
    expect(samplesOf(text).get('process_max_fds')).toBe(samplesOf(await register.metrics()).get('process_max_fds'))
  })

  it('are those of the process while there is no node', async () => {
    const { text } = await metricsPage(() => undefined)
    expect(text).toContain('process_start_time_seconds')
    expect(text).not.toContain('webmq_')
  })

  it('have names as Prometheus wants them, and labels that are never a key or a pattern', () => {
    for (const { name, type, labels, help } of METRICS) {
      expect(name).toMatch(/^webmq_[a-z_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(help).toMatch(/^[A-Z1].*\.$/)
      for (const label of labels) expect(LABELS).toContain(label)
    }
    expect(new Set(METRICS.map(({ name }) => name)).size).toBe(METRICS.length)
  })

  it('stand in docs/operations.md, all of them and no others', () => {
    const page = readFileSync(new URL('../../../../../docs/operations.md', import.meta.url), 'utf8')
    const rows = page.split('\n').filter((line) => line.startsWith('| `webmq_'))
    const expected = METRICS.map(({ name, labels, help }) => {
      const shown = labels.length === 0 ? '' : `{${labels.join(',')}}`
      return `| \`${name}${shown}\` | ${help} |`
    })
    expect(rows).toEqual(expected)
    const histograms = METRICS.filter(({ type }) => type === 'histogram').map(({ name }) => name)
    expect(histograms.filter((name) => !/_(duration|lag)_seconds$/.test(name))).toEqual([])
    expect(page).toContain(`${histograms.length} are histograms`)
  })

  it('exist where a page names one', () => {
    const root = new URL('../../../../../', import.meta.url)
    const pages = readdirSync(new URL('docs', root), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.md'),
    )
    const names = new Set(
      METRICS.flatMap(({ name, type }) =>
        type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    )
    const inDatabase = new Set(postgresOutbox.schema.match(/\bwebmq_\w+/g))
    const unknown = ['README.md', ...pages.map((page) => `docs/${page}`)].flatMap((page) =>
      [...readFileSync(new URL(page, root), 'utf8').matchAll(/\bwebmq_[a-z]\w*/g)].flatMap(([name]) =>
        names.has(name) || inDatabase.has(name) ? [] : [`${page}: ${name}`],
      ),
    )
    expect(unknown).toEqual([])
  })
})
