import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { metricsPage } from '../../packages/server/src/doors/metrics/page.js'
import { METRICS } from '../../packages/server/src/doors/metrics/table.js'
import { ROOT, readJson, readText, readYaml } from './files.js'

const run = promisify(execFile)

const RULES = 'deploy/prometheus/webmq.rules.yml'
const rules: { alert: string; expr: string; annotations: { summary: string } }[] = readYaml(RULES).groups[0].rules
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

/** Runs promtool, or says why the test is skipped. */
async function promtool(skip: (note?: string) => void, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await run('promtool', args, { cwd: `${ROOT}deploy/prometheus` })
    return stdout
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    console.info('alert rules are not checked by promtool: install the Debian package prometheus')
    skip('promtool is missing')
    return ''
  }
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

  it('has alerts with a name of their own, and a summary that names the node', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    for (const { annotations } of rules) expect(annotations.summary).toContain('{{ $labels.instance }}')
  })

  it('is valid', async ({ skip }) => {
    expect(await promtool(skip, 'check', 'rules', 'webmq.rules.yml')).toContain(`SUCCESS: ${rules.length} rules found`)
  })

  it('raises its alerts, the first incident included, and none without a reason', async ({ skip }) => {
    expect(await promtool(skip, 'test', 'rules', 'webmq.rules.test.yml')).toContain('SUCCESS')
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

  it('asks the chosen data source, for the chosen nodes', () => {
    for (const query of boardQueries) expect(query).toContain('instance=~"$instance"')
    const [datasource, instance] = board.templating.list
    expect(datasource).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' })
    expect(instance).toMatchObject({ name: 'instance', query: { query: 'label_values(webmq_build_info, instance)' } })
  })

  it('has queries that Prometheus understands', async ({ skip }) => {
    const queries = boardQueries.map((query) =>
      query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    )
    const groups = [{ name: 'board', rules: queries.map((expr, index) => ({ record: `panel:${index}`, expr })) }]
    const folder = mkdtempSync(join(tmpdir(), 'webmq-board-'))
    try {
      const file = join(folder, 'board.yml')
      writeFileSync(file, JSON.stringify({ groups }))
      expect(await promtool(skip, 'check', 'rules', '--lint=none', file)).toContain('SUCCESS')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('has panels that do not overlap', () => {
    const places = panels.map((panel) => (panel as unknown as { gridPos: object }).gridPos)
    expect(new Set(places.map((place) => JSON.stringify(place))).size).toBe(panels.length)
  })
})
