import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { obtainBalancer } from 'webmq-services'
import { EXIT } from '../../packages/server/src/doors/cli/exit-codes.js'
import { readEnvironment, unknownVariables } from '../../packages/server/src/doors/cli/option-sources.js'
import { ROOT, readText, readYaml } from './files.js'
import { DRAIN_S, STOP_S, testKubernetes } from './kubernetes.js'

const run = promisify(execFile)

describe('compose.yaml', () => {
  const { services } = readYaml('compose.yaml')
  const nodes = Object.entries<Record<string, never>>(services).filter(([name]) => name.startsWith('node-'))

  it('has a profile for every broker, and one for TLS', () => {
    expect(nodes.map(([, { profiles }]) => profiles)).toEqual([['rabbitmq'], ['redis'], ['nats'], ['tls']])
  })

  it.each(nodes)('%s has options that the server knows, and the time to drain', (_, node) => {
    const environment: NodeJS.ProcessEnv = node.environment ?? {}
    expect(unknownVariables(environment)).toEqual([])
    const options = Object.fromEntries(readEnvironment(environment))
    const { drainTimeoutMs, drainDelayMs = 0 } = options
    const stopMs = Number(drainTimeoutMs) + Number(drainDelayMs)
    expect(seconds(node.stop_grace_period ?? '')).toBeGreaterThan(stopMs / 1_000 + STOP_S)
  })

  it.each(nodes)('%s starts only what is in its profile', (_, node) => {
    for (const needed of Object.keys(node.depends_on ?? {})) {
      expect(services[needed].profiles).toEqual(node.profiles)
    }
  })

  it('gives NATS JetStream, which keeps the history', () => {
    expect(services.nats.command).toContain('-js')
  })
})

describe('deploy/haproxy.cfg', () => {
  it('is read by HAProxy, and has room for more than ten nodes', async () => {
    const { file } = await obtainBalancer('haproxy')
    const env = { ...process.env, RESOLVER: '127.0.0.1:53' }
    const { stdout } = await run(file, ['-c', '-V', '-f', `${ROOT}deploy/haproxy.cfg`], { env })
    expect(stdout).toContain('Configuration file is valid')
    const [, places] = readText('deploy/haproxy.cfg').match(/server-template node (\d+) nodes:8080/) ?? []
    expect(Number(places)).toBeGreaterThan(10)
  })
})

describe('deploy/nginx.conf', () => {
  it('is read by nginx', async () => {
    const { file } = await obtainBalancer('nginx')
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-nginx-'))
    try {
      const config = path.join(folder, 'nginx.conf')
      writeFileSync(config, `pid nginx.pid; events {} http { access_log off; include ${ROOT}deploy/nginx.conf; }`)
      const { stderr } = await run(file, ['-t', '-p', folder, '-e', 'stderr', '-c', config])
      expect(stderr).toContain('test is successful')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('deploy/kubernetes', () => {
  const kustomization = readYaml('deploy/kubernetes/kustomization.yaml')
  const files: string[] = [...kustomization.resources, '../prometheus/pod-monitor.yaml']
  const objects = files.map((file) => readYaml(`deploy/kubernetes/${file}`))

  it('is complete: the kustomization names every file', () => {
    const files = readdirSync(`${ROOT}deploy/kubernetes`).filter((file) => file !== 'kustomization.yaml')
    const named = [...kustomization.resources, ...kustomization.configMapGenerator[0].files]
    expect(files.toSorted()).toEqual(named.toSorted())
  })

  testKubernetes(() => ({ objects, configFile: `${ROOT}deploy/kubernetes/webmq.json` }))
})

describe('deploy/systemd', () => {
  const unit = readText('deploy/systemd/webmq.service')

  it('has options that the server knows, and the time to drain', () => {
    const names = unit.match(/\bWEBMQ_[A-Z_]+(?==)/g) ?? []
    expect(names).toEqual(['WEBMQ_CONFIG', 'WEBMQ_JWT_SECRET_FILE'])
    expect(unknownVariables(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([])
    const [, stopS] = unit.match(/^TimeoutStopSec=(\d+)s$/m) ?? []
    expect(Number(stopS)).toBeGreaterThan(DRAIN_S + STOP_S)
  })

  it('starts the server again whatever has ended it, but options that are not allowed', () => {
    expect(unit).toMatch(/^Restart=always$/m)
    expect(unit).toMatch(new RegExp(`^RestartPreventExitStatus=${EXIT.USAGE}$`, 'm'))
  })

  it('lets the server write its audit log', () => {
    const docs = readText('docs/operations.md')
    expect(unit).toMatch(/^LogsDirectory=webmq$/m)
    expect(docs).toContain('/var/log/webmq/audit.log')
  })

  it('is a unit that systemd accepts, and finds well confined', async (context) => {
    const version = await run('systemd-analyze', ['--version']).catch(() => undefined)
    if (version === undefined) return context.skip('systemd-analyze is not on PATH')
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-systemd-'))
    try {
      const file = path.join(folder, 'webmq.service')
      // This machine's Node; systemd refuses programs that are not there.
      writeFileSync(file, unit.replace('/usr/bin/node', process.execPath))
      const { stderr } = await run('systemd-analyze', ['verify', '--man=no', file])
      expect(stderr.split('\n').filter((line) => line.includes('webmq.service'))).toEqual([])
      // 0 is perfectly confined, 10 not at all. The threshold is in tenths.
      await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

function seconds(text: string): number {
  return Number(/^(\d+)s$/.exec(text)?.[1])
}
