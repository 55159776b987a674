import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import dockerignore from '@balena/dockerignore'
import { DockerfileParser } from 'dockerfile-ast'
import { validate } from 'dockerfile-utils'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { readConfigFile } from '../../packages/server/src/doors/cli/config-file.js'
import { startServerProcess } from '../server-process.js'
import { ROOT, readJson, readText } from './files.js'
import { ANSWER_S, SILENT_S, START_S } from './kubernetes.js'

const DOCKERFILE = readText('Dockerfile')

describe('the Dockerfile', () => {
  const instructions = DockerfileParser.parse(DOCKERFILE).getInstructions()
  const last = (keyword: string): string => {
    const found = instructions.findLast((instruction) => instruction.getKeyword() === keyword)
    return found?.getArgumentsContent() ?? ''
  }

  it('has no fault that a linter sees', () => {
    expect(validate('FROM node\nCOPPY . .')).not.toEqual([])
    expect(validate(DOCKERFILE).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([])
  })

  it('copies what is there, and what .dockerignore leaves in the context', () => {
    const context = dockerignore.default().add(readText('.dockerignore'))
    const sources = instructions
      .filter((instruction) => instruction.getKeyword() === 'COPY' && !instruction.toString().includes('--from'))
      .flatMap((instruction) => instruction.getArguments().slice(0, -1))
      .map((argument) => argument.getValue())
      .filter((source) => source !== '.')
    expect(sources).toContain('pnpm-lock.yaml')
    expect(sources.filter((source) => !existsSync(ROOT + source))).toEqual([])
    expect(sources.filter((source) => context.ignores(source))).toEqual([])
    expect(context.ignores('packages/server/src/index.ts')).toBe(false)
    expect(context.ignores('packages/native/crates/engine/src/lib.rs')).toBe(false)
    for (const ignored of ['docs/protocol.md', '.git/config', 'packages/server/dist/index.js', 'node_modules/ws']) {
      expect(context.ignores(ignored), ignored).toBe(true)
    }
  })

  it('copies the lock file before the sources, so that a change of a source downloads nothing', () => {
    expect(DOCKERFILE.indexOf('COPY pnpm-lock.yaml')).toBeLessThan(DOCKERFILE.indexOf(' fetch\n'))
    expect(DOCKERFILE.indexOf(' fetch\n')).toBeLessThan(DOCKERFILE.indexOf('COPY . .'))
  })

  it('uses the pnpm of the repository', () => {
    const used = new Set(DOCKERFILE.match(/pnpm@[\d.]+/g))
    expect([...used]).toEqual([readJson('package.json').packageManager])
  })

  it('runs as a user that Kubernetes can see is not root, with a health check that does not start Node', () => {
    expect(last('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(last('HEALTHCHECK')).toContain('CMD ["/app/healthy.sh"]')
    const commands = readText('deploy/image/healthy.sh').replaceAll(/^#.*$/gm, '')
    expect(commands).not.toMatch(/\b(node|curl|wget)\b/)
  })

  it('has the patience of the probes of Kubernetes', () => {
    const secondsOf = (flag: string): number => {
      const [, count, unit] = new RegExp(`^HEALTHCHECK .*--${flag}=(\\d+)([sm]?) `, 'm').exec(DOCKERFILE) ?? []
      return Number(count) * (unit === 'm' ? 60 : 1)
    }
    expect(secondsOf('interval') * secondsOf('retries')).toBe(SILENT_S)
    expect(secondsOf('timeout')).toBe(ANSWER_S)
    expect(secondsOf('start-period')).toBe(START_S)
    const [check = ''] = DOCKERFILE.match(/^HEALTHCHECK .*$/m) ?? []
    expect(readText('packages/server/templates/image/image/Dockerfile')).toContain(`\n${check}\n`)
  })

  it('sets no option by a variable, because variables override the mounted config file', () => {
    const names = last('ENV').match(/\bWEBMQ_\w+/g)
    expect(names).toEqual(['WEBMQ_CONFIG', 'WEBMQ_DEFAULTS'])
    expect(Object.fromEntries(readConfigFile(`${ROOT}deploy/image/defaults.json`))).toEqual({
      host: '0.0.0.0',
      adminPort: 9090,
    })
    expect(Object.fromEntries(readConfigFile(`${ROOT}deploy/image/webmq.json`))).toEqual({})
  })

  it('installs the server, all brokers, the database outbox, and the libraries of traces', () => {
    const dependencies: Record<string, string> = readJson('deploy/image/package.json').dependencies
    const names = Object.keys(dependencies)
    const adapters = readdirSync(`${ROOT}packages`).filter((name) => /^(broker|outbox)-/.test(name))
    expect(adapters.length).toBeGreaterThan(3)
    const ours = ['webmq-server', ...adapters.map((name) => `webmq-${name}`)]
    for (const name of adapters) expect(DOCKERFILE).toContain(` packages/${name}`)
    expect(names.filter((name) => name.startsWith('webmq-')).sort()).toEqual(ours.toSorted())
    for (const name of ours) expect(dependencies[name]).toBe('workspace:*')
    const sender = readText('packages/server/src/doors/cli/send-traces.ts')
    const imported = [...sender.matchAll(/(?:from|import\() ?'([@\w][^'\s]*)'/g)]
      .map(([, name = '']) => name)
      .filter((name) => !name.startsWith('node:') && !name.startsWith('webmq-') && name !== 'vitest')
    expect(new Set(names.filter((name) => !ours.includes(name)))).toEqual(new Set(imported))
  })
})

describe('the health check of the image', () => {
  const isHealthy = async (adminPort: number): Promise<boolean> => {
    const env = { WEBMQ_ADMIN_HOST: '0.0.0.0', WEBMQ_ADMIN_PORT: String(adminPort) }
    return await promisify(execFile)(`${ROOT}deploy/image/healthy.sh`, { env }).then(
      () => true,
      () => false,
    )
  }

  it('waits for a server that is busy for some seconds', async () => {
    const BUSY_MS = 3_000
    const server = createServer((_, response) => setTimeout(() => response.end('ok'), BUSY_MS))
    onTestFinished(() => void server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    expect(await isHealthy(typeof address === 'object' && address !== null ? address.port : 0)).toBe(true)
  })

  it('tells a server that runs from one that does not', async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    expect(await isHealthy(adminPort)).toBe(false)
    const server = await startServerProcess(port, ['--admin-port', String(adminPort)])
    expect(await isHealthy(adminPort)).toBe(true)
    expect(await server.kill('SIGTERM')).toBe(0)
    expect(await isHealthy(adminPort)).toBe(false)
  })
})
