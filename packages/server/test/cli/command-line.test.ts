import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultOf, environmentNameOf, type OptionSpec } from '../../src/doors/options/spec.js'
import { OPTIONS } from '../../src/doors/options/table.js'
import { runInProcess } from './in-process.js'
import { runCli, startCli } from './process.js'

const SECRET = 'long enough to be one'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('webmq-server --help', () => {
  it.each([['-h'], ['--help'], ['serve', '--help']])('%s is one page, with the commands first', async (...args) => {
    const { exitCode, stdout, stderr } = await runInProcess(args)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(40)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(stdout).toMatch(/-p, --port <number> +Port to bind \(default: 8080\)\n/)
    expect(stdout).toMatch(/--jwt-secret-file <file> +Shared secret that signs tokens\n/)
    expect(stdout).toContain('--help-all')
    if (args[0] === 'serve') return
    const [, commands = ''] = /\n\nCommands:\n(.*?)\n\nOptions/s.exec(stdout) ?? []
    const names = commands.split('\n').map((line) => line.trim().split(' ')[0])
    expect(names).toEqual([
      'serve',
      'token',
      'outbox',
      'sub',
      'pub',
      'top',
      'doctor',
      'init',
      'explain',
      'completion',
      'config',
    ])
  })

  it('has bold titles on a terminal', async () => {
    const { stdout } = await runInProcess(['--help'], { isTTY: true })
    expect(stdout).toContain('\u001b[1mCommands:\u001b[22m')
    const plain = await runInProcess(['--help'], { isTTY: true, env: { NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b')
  })
})

describe('webmq-server --help-all', () => {
  it('begins with examples, and lists every option with its default and its variable', async () => {
    const { exitCode, stdout, stderr } = await runInProcess(['--help-all'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^Examples:\n/)
    for (const spec of OPTIONS) {
      expect(stdout).toContain(`--${spec.flag}`)
      expect(stdout).toContain(environmentNameOf(spec))
    }
    expect(stdout.replace(/\s+/g, ' ')).toContain('(default: 8080, env: WEBMQ_PORT)')
    expect(stdout).toMatch(/Commands:.*serve.*token.*config/s)
    expect(stdout, 'pipes get no colours').not.toContain('\u001b')
  })

  it('fits a narrow terminal, but for the examples', async () => {
    const { stdout } = await runInProcess(['--help-all'])
    const [, reference = ''] = stdout.split('Usage:')
    const lines = reference.split('\n').slice(0, -4)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
  })

  it.each([
    ['completion'],
    ['sub'],
    ['pub'],
    ['top'],
    ['doctor'],
    ['init'],
    ['token'],
    ['token', 'create'],
    ['token', 'inspect'],
    ['config'],
    ['config', 'init'],
    ['config', 'check'],
    ['config', 'print'],
    ['config', 'schema'],
  ])('explains %s %s', async (...command) => {
    const { exitCode, stdout } = await runInProcess([...command, '--help'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`Usage: webmq-server ${command.join(' ')}`)
    expect(stdout.split('\n').length).toBeLessThan(60)
  })
})

describe('a command line', () => {
  it('is a program of its own: output, errors and exit codes are those of the process', async () => {
    expect(await runCli(['--version'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^\d+\.\d+/),
      stderr: '',
    })
    expect(await runCli(['--prot', '1'])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining('--port'),
    })
    const env = { WEBMQ_JWT_SECRET: 'a secret that is long enough for HS256' }
    const { stdout: token } = await runCli(['token', 'create', '-q', '-g', 'a:listen'], { env })
    const inspected = await runCli(['token', 'inspect', '-', '--can', 'publish a'], { env, stdin: token })
    expect(inspected).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('verified'), stderr: '' })
  })

  it('does not mind a reader that goes away', async () => {
    const { child, ended } = startCli(['config', 'schema'])
    child.stdout?.destroy()
    expect(await ended).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('prints the version of the package', async () => {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    expect(await runInProcess(['--version'])).toMatchObject({
      exitCode: 0,
      stdout: `${manifest.version}\n`,
      stderr: '',
    })
  })

  it.each([
    [['--prot', '1'], "unknown option '--prot'\n(Did you mean --port?)"],
    // Names of options, whose flags are shorter.
    [['--tls-key-file', 'x'], '(Did you mean --tls-key?)'],
    [['--max-payload-bytes', '1'], '(Did you mean --max-payload?)'],
    [['--max-per-address', '1'], '(Did you mean --max-connections-per-address?)'],
    [['serv'], 'serv: unknown command, did you mean serve?'],
    [['tokne', 'create'], 'tokne: unknown command, did you mean token?'],
    [['publish', 'a', '1'], 'publish: unknown command, did you mean pub?'],
    [['listen', 'a'], 'listen: unknown command, did you mean sub?'],
    [['serve', 'extra'], 'extra: unknown command'],
    [['token', 'creat'], "unknown command 'creat'\n(Did you mean create?)"],
    [['token'], 'Usage: webmq-server token'],
    [['--port'], "option '-p, --port <number>' argument missing"],
    [['--port', '65536'], '--port: 65536 is not a whole number from 0 to 65,535'],
    [['--port', '80a'], '--port: "80a" is not a whole number'],
    [['--max-payload', '1x'], '--max-payload: "1x" is not a whole number from 1 to 64MiB'],
    [['--log-level', 'inf'], 'did you mean info?'],
    [['--transport', 'native2'], '--transport: "native2" is not one of auto, native, ws, uws, did you mean native?'],
    [['--origin', 'http://a.example', '--origin', 'b'], '--origin: "b" is not'],
    [['--host', '0.0.0.0'], 'allow it with insecure (--insecure)'],
    [['--max-payload', '2MiB'], 'maxOutboxBytes: 1048576 is less than'],
    [['--jwt-secret', SECRET, '--jwt-secret-file', 'b'], 'are both given'],
    [['--jwt-secret', SECRET, '--jwt-secret', 'short'], '--jwt-secret: not a secret of at least 16 bytes'],
    [Array(9).fill(['--jwt-secret', SECRET]).flat(), 'a list of 1 to 8 texts'],
    [['--jwt-secret', 'hunter2'], 'a secret of at least 16 bytes'],
    [['--mesh-secret', 'hunter2'], 'a secret of at least 16 bytes'],
    [['--jwt-secret-file', '/nowhere/secret'], '--jwt-secret-file: cannot read /nowhere/secret (ENOENT)'],
    [['--tls-cert', 'a'], 'needs both tls.certFile (--tls-cert) and tls.keyFile (--tls-key)'],
    [['--tls-cert', 'a', '--tls-cert', 'b', '--tls-key', 'a'], 'got 2 tls.certFile (--tls-cert) and 1'],
    [['--config', '/nowhere/webmq.json'], 'config: cannot read /nowhere/webmq.json (ENOENT)'],
  ])('%j ends with 2 and says what is wrong', async (args, message) => {
    const { exitCode, stdout, stderr } = await runInProcess(args)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(message)
    expect(stderr, 'no stack').not.toMatch(/^\s+at /m)
    expect(stdout).toBe('')
  })

  it('names the code of an error, for the documentation to be found', async () => {
    expect((await runInProcess(['--port', 'x'])).stderr).toMatch(
      /^error: .*\(E_OPTION_INVALID\)\nwebmq-server explain E_OPTION_INVALID says more\n$/,
    )
    expect((await runInProcess(['--host', '::'])).stderr).toMatch(
      /^error: .*\(E_INSECURE\)\nwebmq-server explain E_INSECURE says more\n$/,
    )
  })
})

describe('webmq-server config', () => {
  const print = async (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const { exitCode, stdout, stderr } = await runInProcess(['config', 'print', ...args], { env })
    expect(stderr.replace(/^warning: .*\n/gm, '')).toBe('')
    expect(exitCode).toBe(0)
    return JSON.parse(stdout) as Record<string, unknown>
  }

  it('print shows the defaults where nothing is given', async () => {
    expect(await print([])).toMatchObject({ host: '127.0.0.1', port: 8080, path: '/ws', maxPayloadBytes: 262_144 })
  })

  it('print takes every flag of the table', async () => {
    const samples: Readonly<Record<string, string>> = {
      host: 'localhost',
      origins: 'null',
      'tls.certFile': 'cert.pem',
      'tls.keyFile': 'key.pem',
      transport: 'uws',
      adminPort: '9090',
      'jwt.jwksUrl': 'https://id.example/jwks.json',
      'jwt.issuer': 'me',
      'jwt.audience': 'webmq',
      'jwt.algorithms': 'ES256',
      'jwt.type': 'at+jwt',
      'mesh.secret': SECRET,
      hooks: './hooks.js',
      'outbox.url': 'postgres://db.example/app?sslmode=verify-full',
      trustedProxies: '10.0.0.0/8',
      'webhook.url': 'https://app.example/webmq',
      'webhook.secret': SECRET,
      path: '/',
      tokenCookie: 'session',
    }
    const specs = OPTIONS.map((spec): OptionSpec => spec).filter(({ name }) => !/^jwt\.(secret|publicKey)$/.test(name))
    const args = specs.flatMap((spec) =>
      spec.type === 'switch'
        ? [`--${spec.flag}`]
        : [
            `--${spec.flag}`,
            samples[spec.name] ?? String(defaultOf(spec) ?? (spec.type === 'integer' ? spec.range[0] : '')),
          ],
    )
    const { jwt, tls, ...printed } = await print(args)
    expect(jwt).toMatchObject({
      jwksUrl: samples['jwt.jwksUrl'],
      issuer: 'me',
      audience: 'webmq',
      algorithms: ['ES256'],
    })
    expect(tls).toEqual({ certFile: ['cert.pem'], keyFile: ['key.pem'] })
    expect(printed).toMatchObject({ demo: true, insecure: true, origins: ['null'], path: '/', port: 8080 })
  })

  it('print lets flags win over the environment, that over the file, and that over the defaults', async () => {
    const config = join(folder, 'webmq.json')
    writeFileSync(
      config,
      JSON.stringify({ port: 1, path: '/file', maxListensPerConnection: 5, demo: true, origins: [] }),
    )
    const env = { WEBMQ_CONFIG: config, WEBMQ_PORT: '2', WEBMQ_PATH: '/env', PORT: '4' }
    expect(
      await print(['-p', '3', '--no-demo', '--origin', 'http://a.example', '--origin', 'http://b.example'], env),
    ).toMatchObject({
      port: 3,
      path: '/env',
      maxListensPerConnection: 5,
      demo: false,
      origins: ['http://a.example', 'http://b.example'],
      maxHeaderBytes: 8192,
    })
  })

  it('print lets the config file win over PORT, and PORT over the file of defaults', async () => {
    const [config, defaults] = [join(folder, 'mounted.json'), join(folder, 'defaults.json')]
    writeFileSync(config, JSON.stringify({ port: 1, path: '/file' }))
    writeFileSync(defaults, JSON.stringify({ host: '::', port: 5, path: '/default', insecure: true }))
    const env = { WEBMQ_DEFAULTS: defaults, PORT: '4' }
    expect(await print([], { ...env, WEBMQ_CONFIG: config })).toMatchObject({ host: '::', port: 1, path: '/file' })
    expect(await print([], { ...env, WEBMQ_HOST: '127.0.0.2' })).toMatchObject({ host: '127.0.0.2', port: 4 })
    expect(await print([], { WEBMQ_DEFAULTS: defaults, PORT: '' })).toMatchObject({ port: 5, path: '/default' })
  })

  it('print hides secrets, wherever they come from', async () => {
    const secretFile = join(folder, 'secret')
    writeFileSync(secretFile, 'hunter2 hunter2 hunter2 hunter2 hunter2\n')
    for (const [args, env] of [
      [['--jwt-secret', 'hunter2 hunter2 hunter2'], {}],
      [['--jwt-secret-file', secretFile], {}],
      [[], { WEBMQ_JWT_SECRET: 'hunter2 hunter2 hunter2' }],
      [[], { WEBMQ_JWT_SECRET_FILE: secretFile }],
    ] as const) {
      const { stdout, stderr } = await runInProcess(['config', 'print', ...args], { env })
      expect(JSON.parse(stdout)).toMatchObject({ jwt: { secret: ['[hidden]'] } })
      expect(stdout + stderr).not.toContain('hunter2')
    }
  })

  it('print shows the address of a broker without its password, wherever it comes from', async () => {
    const address = 'amqp://user:sesame@host:5672/vhost'
    const brokerFile = join(folder, 'broker')
    writeFileSync(brokerFile, `${address}\n`)
    const config = join(folder, 'broker.json')
    writeFileSync(config, JSON.stringify({ brokerFile }))
    for (const [args, env] of [
      [['--broker', address], {}],
      [['--broker-file', brokerFile], {}],
      [['--config', config], {}],
      [[], { WEBMQ_BROKER: address }],
      [[], { WEBMQ_BROKER_FILE: brokerFile }],
    ] as const) {
      const { stdout, stderr } = await runInProcess(['config', 'print', ...args], { env })
      expect(JSON.parse(stdout)).toMatchObject({ broker: 'amqp://user:***@host:5672/vhost' })
      expect(stdout + stderr).not.toContain('sesame')
    }
  })

  it('does not repeat the password of a broker that it does not know', async () => {
    const brokerFile = join(folder, 'bad-broker')
    writeFileSync(brokerFile, 'ampq://user:sesame@host')
    for (const [args, env] of [
      [['--broker', 'ampq://user:sesame@host'], {}],
      [['--broker-file', brokerFile], {}],
      [[], { WEBMQ_BROKER: 'ampq://user:sesame@host' }],
    ] as const) {
      const { exitCode, stdout, stderr } = await runInProcess(args, { env })
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
      expect(stderr).toContain('"ampq://user:***@host" is not memory, or an address')
      expect(stderr).not.toContain('sesame')
    }
  })

  it('print warns of variables that it does not know and of a short secret, and goes on', async () => {
    const env = { WEBMQ_MAX_PAYLAOD: '1', WEBMQ_JWT_SECRET: 'a short secret ...' }
    const { exitCode, stderr } = await runInProcess(['config', 'print'], { env })
    expect(exitCode).toBe(0)
    expect(stderr).toContain('warning: unknown environment variable WEBMQ_MAX_PAYLAOD, did you mean WEBMQ_MAX_PAYLOAD?')
    expect(stderr).toContain('warning: jwt.secret has fewer than 32 bytes')
  })
})

// Symptom: MaxListenersExceededWarning in tests of commands. Cause: each server of a process listened to signals and bugs once more.
it('leaves no more listeners on the process, however many servers it starts', async () => {
  const countsAfterStart = async () => {
    const { stderr } = await runInProcess(['--port', '0', '--audit-log', '/nowhere/audit.log'])
    expect(stderr).toContain('auditLog')
    return Object.fromEntries(process.eventNames().map((name) => [name, process.listenerCount(name)]))
  }
  // The first ones make what the process keeps: its way to standard error.
  await countsAfterStart()
  const twice = await countsAfterStart()
  expect(await countsAfterStart()).toEqual(twice)
})
