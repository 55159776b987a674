import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from './files.js'
import { Unit } from './production/units.mjs'

const base = mkdtempSync(path.join(tmpdir(), 'webmq-values-'))
afterAll(() => rmSync(base, { recursive: true }))

const CLI = `${ROOT}packages/server/bin/webmq-server.js`
/** What some language or other takes for its own, and what a URL says in its stead. */
const GIVEN = 'http://collector:4318/a%20b/$HOME/$(HOME)/%i/"q"/\\/\'/#/c d'
const MEANT = "http://collector:4318/a%20b/$HOME/$(HOME)/%i/%22q%22///'/#/c%20d"

function init(kind: string, name: string, more: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const folder = path.join(base, name)
  const args = [CLI, 'init', kind, folder, '--host', 'chat.example.org', ...more]
  execFileSync(process.execPath, args, { env: { ...process.env, ...env }, stdio: 'pipe' })
  return { folder, text: (file: string) => readFileSync(path.join(folder, file), 'utf8') }
}

const unitIn = (folder: string) =>
  new Unit('webmq@1.service', { units: path.join(folder, 'systemd'), run: '/run', state: '/s' })

// Symptom: a unit with `--traces` of a URL with `%` or a space was refused by systemd, or sent traces elsewhere. Cause: values were
// put into files of other languages as they are.
describe('webmq-server init, what was given', () => {
  const alertsIn = (text: string) => parse(text).receivers[0].webhook_configs[0].url

  it('reaches nodes and Alertmanager through the units of systemd', () => {
    const { folder, text } = init('systemd', 'systemd', ['--traces', GIVEN, '--alerts', GIVEN])
    expect(unitIn(folder).environment.OTEL_EXPORTER_OTLP_ENDPOINT).toBe(MEANT)
    expect(alertsIn(text('prometheus/alertmanager.yml'))).toBe(MEANT)
  })

  it('reaches them through the variables of Compose', () => {
    const { text } = init('compose', 'compose', ['--traces', GIVEN, '--alerts', GIVEN])
    const { OTEL_EXPORTER_OTLP_ENDPOINT: url } = parse(text('compose.yaml'), { merge: true }).services['node-1']
      .environment
    // Compose puts variables for $NAME, and $ for $$.
    expect(url.replaceAll('$$', '')).not.toContain('$')
    expect(url.replaceAll('$$', '$')).toBe(MEANT)
    expect(alertsIn(text('prometheus/alertmanager.yml'))).toBe(MEANT)
  })

  it('reaches them through the environment of a pod', () => {
    const { text } = init('helm', 'helm', ['--traces', GIVEN, '--alerts', GIVEN])
    const { env } = parse(text('values.yaml'))
    const { value } = env.find(({ name }: { name: string }) => name === 'OTEL_EXPORTER_OTLP_ENDPOINT')
    // Kubernetes does so, too, for $(NAME).
    expect(value.replaceAll('$$', '')).not.toContain('$')
    expect(value.replaceAll('$$', '$')).toBe(MEANT)
    expect(text('alerts.yaml')).toContain(`url: ${JSON.stringify(MEANT)}`)
  })

  it('names the program by its path, whatever npm has for a prefix', () => {
    const prefix = path.join(base, 'a b $X 100%i "q"')
    const { folder } = init('systemd', 'prefix', [], { npm_config_global_prefix: prefix })
    const [node, script] = unitIn(folder).command
    expect([node, script]).toEqual([process.execPath, `${prefix}/lib/node_modules/webmq-server/bin/webmq-server.js`])
  })

  it.each(['a b', 'x; rm -rf /', 'x: y', '$(id)', '-x'])('is refused as an image: %s', (image) => {
    expect(() => init('helm', `image-${randomUUID()}`, ['--image', image])).toThrow('is not the name of an image')
  })

  it('is refused as a password that would need other quotes in each file', () => {
    const { folder } = init('compose', 'password', [])
    writeFileSync(path.join(folder, 'secrets/broker-password'), 'a@b "c"\n')
    expect(() => init('compose', 'password', ['--force'])).toThrow('broker-password: a password here is')
  })
})
