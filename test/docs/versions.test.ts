import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BROKER_VERSIONS } from 'webmq-services'
import { USUAL_VERSIONS } from '../../scripts/lib/services.mjs'
import {
  keyOf,
  readRows,
  VERSION_PAGES,
  type VersionRow,
  withVersions,
  writeRow,
} from '../../scripts/lib/version-rows.mjs'
import { ROOT } from './blocks.js'

const ROW: VersionRow = {
  broker: 'Redis',
  version: '8.0.2',
  node: '20.20.2',
  date: '2026-01-02',
  commit: 'abcdef12',
  seconds: 600,
  tests: { passed: 1_000, failed: 0, skipped: 3, failures: [] },
  checker: {
    ...{ themes: 17, schedules: 850, seconds: 20, publishes: 123_456, deliveries: 234_567, gaps: 40 },
    ...{ violations: 0, failedSeeds: [] },
  },
}

describe('the versions of brokers', () => {
  it.each(VERSION_PAGES)('%s has what was played', (page) => {
    const text = readFileSync(page, 'utf8')
    expect(text).toContain('<!-- versions: ')
    expect(withVersions(text, readRows())).toBe(text)
  })

  it('are a row for each minor version and each major version of Node', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-rows-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = path.join(folder, 'versions.json')
    const rows = [
      { ...ROW, version: '8.0.9' },
      { ...ROW, broker: 'NATS', version: '2.14.1' },
      { ...ROW, broker: 'NATS', version: '2.9.10' },
      { ...ROW, node: '22.1.0' },
      ROW,
    ]
    for (const row of rows) writeRow(row, file)
    expect(readRows(file).map((row) => [row.version, keyOf(row)])).toEqual([
      ['2.9.10', 'NATS 2.9, Node 20'],
      ['2.14.1', 'NATS 2.14, Node 20'],
      ['8.0.2', 'Redis 8.0, Node 20'],
      ['8.0.2', 'Redis 8.0, Node 22'],
    ])
  })

  it('show what failed', () => {
    const failed = { ...ROW, tests: { ...ROW.tests, failed: 2 }, checker: { ...ROW.checker, violations: 7 } }
    const page = withVersions('<!-- versions: played -->\n<!-- /versions -->', [failed])
    expect(page).toContain('| Redis 8.0.2 | 20.20.2 | 1,000, 2 failed | 850, 20 s each | 123,456 | 234,567 | 7 |')
    expect(() => withVersions('<!-- versions: other -->\n<!-- /versions -->', [])).toThrow('no table other')
  })

  // With a correction, which test/deploy/pins.test.ts holds.
  it('of compose.yaml are those that npm test plays', () => {
    const images = [...readFileSync(path.join(ROOT, 'compose.yaml'), 'utf8').matchAll(/image: ([\w.:-]+)/g)]
    for (const [kind, version] of Object.entries(USUAL_VERSIONS)) {
      const usual = BROKER_VERSIONS.find((row) => row.kind === kind && row.version === version)
      const [line = ''] = usual?.image.split('-') ?? []
      expect(
        images.filter(([, image = '']) => image.startsWith(`${line}.`)),
        kind,
      ).toHaveLength(1)
    }
  })
})
