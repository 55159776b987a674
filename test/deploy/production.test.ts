import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { canInstallPackages, installPackage } from 'webmq-services'
import { ROOT } from './files.js'
import { MISTAKES } from './production/live-mistakes.mjs'

const run = promisify(execFile)
const PLAY_TIMEOUT_MS = 540_000

/** Programs of an installation by their Debian packages. The balancers and brokers of the other tests are elsewhere. */
const PROGRAMS: Readonly<Record<string, string>> = {
  caddy: 'caddy',
  prometheus: 'prometheus',
  'prometheus-alertmanager': 'prometheus-alertmanager',
  'redis-server': 'redis-server',
}
/** A network and a table of mounts of its own, in which this user is root. */
const NAMESPACES = process.getuid?.() === 0 ? ['--net', '--mount'] : ['--user', '--map-root-user', '--net', '--mount']

interface Finding {
  readonly check: string
  readonly status: string
  readonly text: string
}

interface Played {
  readonly commands: number
  readonly readyS: number
  readonly dashboardS: number
  readonly empty: { readonly asked: number; readonly failed: readonly string[] }
  readonly doctor: readonly Finding[]
  readonly killed: readonly Finding[]
  readonly found: readonly { readonly mistake: string; readonly says: readonly Finding[] }[]
}

/** Why the play is not possible here; `undefined` if it is. */
async function obtainPrograms(broker: string): Promise<string | undefined> {
  if (!(await isThere('unshare', ...NAMESPACES, 'true')))
    return 'this machine allows no network of its own (unshare --net --mount)'
  for (const [program, debian] of Object.entries(PROGRAMS)) {
    if (await isThere(program, '--version')) continue
    if (!canInstallPackages()) return `${program} is missing: install ${debian}`
    await installPackage(debian)
  }
  if (broker === 'rabbitmq' && !existsSync('/usr/lib/rabbitmq/bin/rabbitmq-server')) {
    if (!canInstallPackages()) return 'rabbitmq-server is missing: install rabbitmq-server'
    await installPackage('rabbitmq-server')
  }
  return undefined
}

async function isThere(program: string, ...args: string[]): Promise<boolean> {
  // Caddy says its version by a command.
  const asked = program === 'caddy' ? ['version'] : args
  return await run(program, asked).then(
    () => true,
    () => false,
  )
}

const BROKERS = ['redis', 'nats', 'rabbitmq'] as const

describe.each(BROKERS)('webmq-server init systemd --broker %s, played', (broker) => {
  let missing: string | undefined
  let played: Played

  beforeAll(async () => {
    missing = await obtainPrograms(broker)
    if (missing !== undefined) return console.warn(`the installation is not played: ${missing}`)
    const { stdout } = await run(
      'unshare',
      [...NAMESPACES, process.execPath, `${ROOT}test/deploy/production/play.mjs`, broker],
      {
        timeout: PLAY_TIMEOUT_MS,
        maxBuffer: 16 * 1024 * 1024,
      },
    )
    played = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
    const { commands, readyS, dashboardS } = played
    console.info(
      `${commands} commands; three nodes ready after ${readyS} s, all alerts and panels after ${dashboardS} s`,
    )
  }, PLAY_TIMEOUT_MS)

  const skipIfMissing = (context: TestContext) => {
    if (missing !== undefined) context.skip(missing)
  }

  it('comes from an empty folder to three nodes behind TLS with alerts and a board, in a minute of work', (context) => {
    skipIfMissing(context)
    expect(played.commands).toBeLessThanOrEqual(7)
    expect(played.dashboardS).toBeLessThan(120)
    expect(played.empty.asked).toBeGreaterThan(20)
    expect(played.empty.failed).toEqual([])
  })

  it('is in order for the doctor, from outside and from inside', (context) => {
    skipIfMissing(context)
    expect(played.doctor.filter(({ status }) => status !== 'ok')).toEqual([])
    const checks = played.doctor.map(({ check }) => check)
    expect(checks).toEqual(
      expect.arrayContaining(['persistence', 'cluster', 'monitoring', 'tls', 'operators', 'token']),
    )
  })

  it('loses nothing when one node of three is killed', (context) => {
    skipIfMissing(context)
    const [killed] = played.killed.filter(({ check }) => check === 'kill one')
    expect(killed).toMatchObject({ status: 'ok', text: expect.stringContaining('recovered, nothing of') })
    expect(killed?.text).not.toMatch(/^0 of/)
  })

  for (const { name, check } of MISTAKES.filter(({ of = broker }) => of === broker)) {
    it(`is found: ${name}`, (context) => {
      skipIfMissing(context)
      const [says] = played.found.filter(({ mistake }) => mistake === name)
      expect(says?.says.filter((each) => each.check === check)).toMatchObject([{ status: 'fail' }])
    })
  }
})

describe('the files of webmq-server init systemd', () => {
  it.for([...BROKERS])(
    'are units that systemd accepts, and configurations that their programs accept, with %s',
    async (broker, context) => {
      if (!(await isThere('systemd-analyze', '--version'))) return context.skip('systemd-analyze is not on PATH')
      const base = mkdtempSync(path.join(tmpdir(), 'webmq-units-'))
      try {
        const folder = path.join(base, 'webmq')
        const cli = `${ROOT}packages/server/bin/webmq-server.js`
        const env = { ...process.env, npm_config_global_prefix: base }
        const flags = ['--host', 'chat.example.org', '--broker', broker, '--traces', 'http://collector:4318/a%20b']
        await run(process.execPath, [cli, 'init', 'systemd', folder, ...flags], { env })
        const units = readdirSync(path.join(folder, 'systemd')).filter((name) => /\.(service|target)$/.test(name))
        const files = units.map((name) => path.join(folder, 'systemd', name.replace('@.', '@1.')))
        const { stderr } = await run('systemd-analyze', ['verify', '--man=no', ...files], {
          env: { ...process.env, SYSTEMD_UNIT_PATH: `${path.join(folder, 'systemd')}:` },
        }).catch((error) => error)
        const isProgram = (line: string) => / is not executable: /.test(line)
        const complaints = stderr.split('\n').filter((line: string) => line.includes(folder) || line.includes('webmq'))
        expect(complaints.filter((line: string) => !isProgram(line))).toEqual([])
        if (await isThere('caddy', 'version')) {
          await run('caddy', ['validate', '--config', path.join(folder, 'Caddyfile'), '--adapter', 'caddyfile'])
        }
        for (const [program, ...args] of [
          ['promtool', 'check', 'config', path.join(folder, 'prometheus/prometheus.yml')],
          ['amtool', 'check-config', path.join(folder, 'prometheus/alertmanager.yml')],
        ] as const) {
          if (await isThere(program, '--version')) await run(program, args)
          else console.info(`${program} does not check its file: it is not on PATH`)
        }
      } finally {
        rmSync(base, { recursive: true })
      }
    },
  )
})
