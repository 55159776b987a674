import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { DOCS_URL } from 'webmq-client/protocol'
import { obtainPrometheus } from 'webmq-services'
import { parse } from 'yaml'
import { metricsPage } from '../../packages/server/src/doors/metrics/page.js'
import { METRICS } from '../../packages/server/src/doors/metrics/table.js'
import { STATES } from '../states/table.js'
import { ROOT, readJson, readText, readYaml } from './files.js'

const run = promisify(execFile)

const RULES = 'deploy/prometheus/webmq.rules.yml'
const rules: { alert: string; expr: string; annotations: { summary: string; runbook_url: string } }[] =
  readYaml(RULES).groups[0].rules
const board = readJson('deploy/grafana/webmq.json')
const panels: { type: string; title: string; targets?: { expr: string }[] }[] = board.panels
const boardQueries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

/** Metrics that a query names: those of the server and of its process. */
function metricsOf(query: string): string[] {
  return [...new Set(query.match(/\b(?:webmq|nodejs|process)_\w+/g) ?? [])]
}

/** All names that a page may have, those of histograms with their suffixes. */
async function knownNames(): Promise<Set<string>> {
  const { text } = await metricsPage(() => undefined)
  const ofProcess = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name)
  const own = METRICS.flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  return new Set([...own, ...ofProcess])
}

async function promtool(...args: string[]): Promise<string> {
  const { promtool } = await obtainPrometheus()
  return (await run(promtool, args, { cwd: `${ROOT}deploy/prometheus` })).stdout
}

/** Alerts of which a test of the rules expects one at least. */
function raisedIn(tests: string): string[] {
  const cases = readTests(tests).flatMap(({ alert_rule_test: ofTest }) => ofTest)
  return cases.flatMap(({ alertname, exp_alerts: expected }) => (expected.length > 0 ? [alertname] : []))
}

function readTests(text: string) {
  const { tests } = parse(text) as {
    readonly tests: readonly {
      readonly alert_rule_test: readonly { alertname: string; exp_alerts: readonly object[] }[]
    }[]
  }
  return tests
}

describe('deploy/prometheus', () => {
  it('names only metrics that a server has, and only label values that they can have', async () => {
    const known = await knownNames()
    for (const { alert, expr } of rules) for (const name of metricsOf(expr)) expect(known, alert).toContain(name)
    for (const query of [...rules.map(({ expr }) => expr), ...boardQueries]) {
      for (const [, name, label, value] of query.matchAll(/(webmq_\w+)\{[^}]*?(\w+)="([\w-]+)"/g)) {
        const spec = METRICS.find((metric) => metric.name === name)
        expect(spec?.labels, query).toContain(label)
        if ((spec?.values?.length ?? 0) > 0) expect(spec?.values, query).toContain(value)
      }
    }
  })

  it('has alerts with a name of their own, and a summary that names the node or its job', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    for (const { alert, annotations } of rules)
      if (alert !== 'WebMQNoNodes') expect(annotations.summary).toMatch(/\{\{ \$labels\.(instance|job) \}\}/)
  })

  it('sends whoever is woken to a section about the alert', () => {
    const sections = [...readText('docs/operations.md').matchAll(/^### (WebMQ\w+)\n\n\S/gm)].map(([, alert]) => alert)
    expect(sections).toEqual(rules.map(({ alert }) => alert))
    for (const { alert, annotations } of rules)
      expect(annotations.runbook_url).toBe(`${DOCS_URL}operations.md#${alert.toLowerCase()}`)
  })

  it('has no alert that nobody has seen: each is raised by a state, or by promtool', () => {
    const tests = readText('deploy/prometheus/webmq.rules.test.yml')
    const raised = new Set<string>([...STATES.flatMap(({ alerts }) => alerts), ...raisedIn(tests)])
    expect(rules.map(({ alert }) => alert).filter((alert) => !raised.has(alert))).toEqual([])
  })

  it('has one alert for what all nodes notice at once', () => {
    const shared = rules.filter(({ expr }) => /webmq_broker_status|E_BROKER_UNAVAILABLE|clock_apart/.test(expr))
    expect(shared.length).toBeGreaterThan(3)
    for (const { expr } of shared) expect(expr).toMatch(/^(sum|max) by \(job\)/)
  })

  it('has routes that Alertmanager understands, and that name alerts', async ({ skip }) => {
    const names = readText('deploy/prometheus/alertmanager.yml').match(/WebMQ\w+/g) ?? []
    for (const name of names) expect(rules.map(({ alert }) => alert)).toContain(name)
    const checked = await run('amtool', ['check-config', `${ROOT}deploy/prometheus/alertmanager.yml`]).catch(
      (error: NodeJS.ErrnoException) => error,
    )
    if (!(checked instanceof Error)) return
    if (checked.code !== 'ENOENT') throw checked
    console.info('alertmanager.yml is not checked by amtool: install the Debian package prometheus-alertmanager')
    skip('amtool is missing')
  })

  it('is valid', async () => {
    expect(await promtool('check', 'rules', 'webmq.rules.yml')).toContain(`SUCCESS: ${rules.length} rules found`)
  })

  it('raises its alerts, the first incident included, and none without a reason', async () => {
    expect(await promtool('test', 'rules', 'webmq.rules.test.yml')).toContain('SUCCESS')
  })

  it('has alerts of RabbitMQ, each raised by promtool, that lead to its README', async () => {
    const ofBroker: typeof rules = readYaml('deploy/prometheus/rabbitmq.rules.yml').groups[0].rules
    expect(await promtool('test', 'rules', 'rabbitmq.rules.test.yml')).toContain('SUCCESS')
    const names = ofBroker.map(({ alert }) => alert)
    expect(names.toSorted()).toEqual(raisedIn(readText('deploy/prometheus/rabbitmq.rules.test.yml')).toSorted())
    const [, page = ''] = readText('packages/broker-rabbitmq/README.md').split('\n## Alerts\n')
    expect([...page.matchAll(/^\| `(RabbitMQ\w+)`/gm)].map(([, name]) => name)).toEqual(names)
    for (const { annotations } of ofBroker)
      expect(annotations.runbook_url).toMatch(/packages\/broker-rabbitmq\/README\.md#alerts$/)
  })

  it('is named in docs/operations.md, as the board is', () => {
    const page = readText('docs/operations.md')
    expect(page).toContain(`../${RULES}`)
    expect(page).toContain('../deploy/grafana/webmq.json')
  })
})

describe('deploy/grafana', () => {
  it('names only metrics that a server has', async () => {
    const known = await knownNames()
    expect(boardQueries.length).toBeGreaterThan(20)
    for (const query of boardQueries) {
      expect(metricsOf(query), query).not.toEqual([])
      for (const name of metricsOf(query)) expect(known, query).toContain(name)
    }
  })

  it('shows each state of a node', () => {
    const shown = boardQueries.flatMap(metricsOf)
    for (const { state, metric } of STATES) {
      const [name = ''] = metricsOf(metric)
      // Audit lines and refused connections by their sums; a node that is gone has no series.
      if (name !== '') expect(shown, state).toContain(name)
    }
  })

  it('asks the chosen data source, for the chosen nodes', () => {
    for (const query of boardQueries) expect(query).toContain('instance=~"$instance"')
    const [datasource, instance] = board.templating.list
    expect(datasource).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' })
    expect(instance).toMatchObject({ name: 'instance', query: { query: 'label_values(webmq_build_info, instance)' } })
  })

  it('has queries that Prometheus understands', async () => {
    const queries = boardQueries.map((query) =>
      query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    )
    const groups = [{ name: 'board', rules: queries.map((expr, index) => ({ record: `panel:${index}`, expr })) }]
    const folder = mkdtempSync(join(tmpdir(), 'webmq-board-'))
    try {
      const file = join(folder, 'board.yml')
      writeFileSync(file, JSON.stringify({ groups }))
      expect(await promtool('check', 'rules', '--lint=none', file)).toContain('SUCCESS')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('has panels that do not overlap', () => {
    const places = panels.map((panel) => (panel as unknown as { gridPos: object }).gridPos)
    expect(new Set(places.map((place) => JSON.stringify(place))).size).toBe(panels.length)
  })
})
