import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { readConfigFile } from '../../packages/server/src/doors/cli/config-file.js'
import { parseDocuments, ROOT, readText, readYaml, type Tree } from './files.js'
import { testKubernetes } from './kubernetes.js'

const HELM_VERSION = 'v3.18.6'
const BUILD_TIMEOUT_MS = 1_800_000
const CHART = `${ROOT}deploy/helm`

const SECRETS = ['broker.url=amqp://user:password@host', 'tokens.secret=0123456789abcdef0123456789abcdef']
const EVERYTHING = [...SECRETS, 'ingress.enabled=true', 'autoscaler.enabled=true', 'podMonitor.enabled=true']

const run = promisify(execFile)
const folder = mkdtempSync(path.join(tmpdir(), 'webmq-helm-'))
let helm = 'helm'
let missing: string | undefined

beforeAll(async () => {
  missing = await obtainHelm()
  if (missing !== undefined) console.warn(missing)
}, BUILD_TIMEOUT_MS)

afterAll(() => rmSync(folder, { recursive: true }))

describe('deploy/helm', () => {
  let everything: { objects: Tree[]; configFile: string }

  beforeAll(async () => {
    if (missing === undefined) everything = await install(EVERYTHING)
  })

  testKubernetes((context) => {
    skipWithoutHelm(context)
    return everything
  })

  it('is in order for helm lint', async (context) => {
    skipWithoutHelm(context)
    const { stdout } = await run(helm, ['lint', '--strict', CHART, ...sets(SECRETS)])
    expect(stdout).toContain('0 chart(s) failed')
  })

  it('makes what deploy/kubernetes has, but for names of its own', async (context) => {
    skipWithoutHelm(context)
    const read = (kind: string) => everything.objects.find((object) => object.kind === kind)
    const labels = { 'app.kubernetes.io/name': 'webmq' }
    const plain = (tree: Tree): Tree =>
      JSON.parse(JSON.stringify(tree), (_, value) => (value?.['app.kubernetes.io/instance'] ? labels : value))
    for (const file of readYaml('deploy/kubernetes/kustomization.yaml').resources) {
      const expected = readYaml(`deploy/kubernetes/${file}`)
      const { spec } = plain(read(expected.kind))
      if (expected.kind === 'Service') expected.spec.type = 'ClusterIP'
      if (expected.kind === 'Deployment') {
        expected.spec.template.metadata = spec.template.metadata
        Object.assign(expected.spec.template.spec.containers[0], {
          image: `ghcr.io/webmq/webmq-server:${readYaml('deploy/helm/Chart.yaml').appVersion}`,
          imagePullPolicy: 'IfNotPresent',
        })
      }
      expect(spec, file).toEqual(expected.spec)
      expect(read(expected.kind)?.metadata.annotations, file).toEqual(expected.metadata.annotations)
    }
    expect(readConfigFile(everything.configFile)).toEqual(readConfigFile(`${ROOT}deploy/kubernetes/webmq.json`))
  })

  it('takes the image by its digest, if there is one', async (context) => {
    skipWithoutHelm(context)
    const digest = `sha256:${'0'.repeat(64)}`
    const { objects } = await install([...SECRETS, 'image.tag=1.2.3', `image.digest=${digest}`])
    const { spec } = objects.find(({ kind }) => kind === 'Deployment').spec.template
    expect(spec.containers[0].image).toBe(`ghcr.io/webmq/webmq-server@${digest}`)
  })

  it('has a secret of its own, or that of the documentation, and the rules of the log', async (context) => {
    skipWithoutHelm(context)
    const own = await install(SECRETS)
    expect(own.objects.find(({ kind }) => kind === 'Secret').stringData).toEqual({
      broker: 'amqp://user:password@host',
      'jwt-secret': '0123456789abcdef0123456789abcdef',
    })
    const kinds = own.objects.map(({ kind }) => kind)
    expect(kinds.toSorted()).toEqual([
      'ConfigMap',
      'Deployment',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Secret',
      'Service',
    ])
    const [, values = ''] = readText('docs/operations.md').match(/^(# my-values.yaml\n.*?)^```$/ms) ?? []
    const file = path.join(folder, 'my-values.yaml')
    writeFileSync(file, values)
    const yours = await install(['tokens.inExistingSecret=false'], ['--values', file])
    expect(yours.objects.some(({ kind }) => kind === 'Secret')).toBe(false)
    const { spec } = yours.objects.find(({ kind }) => kind === 'Deployment')
    expect(spec.replicas).toBe(3)
    expect(spec.template.spec.volumes[1].secret.secretName).toBe('webmq')
    expect(spec.template.spec.containers[0].env.map(({ name }: { name: string }) => name)).toEqual([
      'WEBMQ_BROKER_FILE',
    ])
    expect(Object.fromEntries(readConfigFile(yours.configFile))).toMatchObject({ history: ['chat.#=1000,1h'] })
    await expect(install([])).rejects.toThrow('broker.url or existingSecret is needed')
  })
})

describe('webmq-server init helm', () => {
  it('gives the operator of Prometheus the rules of RabbitMQ, and the nodes a broker that is not on one machine', async () => {
    const made = path.join(folder, 'rabbitmq')
    const args = ['init', 'helm', made, '--host', 'chat.example.org', '--broker', 'rabbitmq']
    await run(process.execPath, [`${ROOT}packages/server/bin/webmq-server.js`, ...args])
    const objects = ['broker', 'broker-alerts'].flatMap((name) =>
      parseDocuments(readFileSync(path.join(made, `${name}.yaml`), 'utf8')),
    )
    const read = (kind: string) => objects.find((object) => object.kind === kind)
    expect(read('PrometheusRule').spec).toEqual(readYaml('deploy/prometheus/rabbitmq.rules.yml'))
    const { spec } = read('StatefulSet')
    const [server] = spec.template.spec.containers
    const port = server.ports.find(({ name }: { name: string }) => name === 'prometheus')
    expect(read('PodMonitor').spec.podMetricsEndpoints[0].port).toBe(port.name)
    expect(read('PodMonitor').spec.selector).toEqual(spec.selector)
    expect(spec.template.spec.topologySpreadConstraints[0].topologyKey).toBe('kubernetes.io/hostname')
    const servers = [...readFileSync(path.join(made, 'rabbitmq.conf'), 'utf8').matchAll(/nodes\.\d = (\S+)/g)]
    const [name] = server.env.filter(({ name: each }: { name: string }) => each === 'RABBITMQ_NODENAME')
    expect(servers.map(([, each]) => each)).toEqual(
      [0, 1, 2].map((n) => name.value.replace('$(NAME)', `webmq-broker-${n}`)),
    )
  })

  it('makes values that the chart takes, and pods that read the webmq.json of the folder', async (context) => {
    skipWithoutHelm(context)
    const made = path.join(folder, 'made')
    const args = ['init', 'helm', made, '--host', 'chat.example.org', '--traces', 'http://collector:4318']
    await run(process.execPath, [`${ROOT}packages/server/bin/webmq-server.js`, ...args])
    const chart = path.join(made, 'chart')
    const file = path.join(made, 'webmq.json')
    const values = ['--values', path.join(made, 'values.yaml'), '--set-file', `configFile=${file}`]
    const { stdout: linted } = await run(helm, ['lint', '--strict', chart, ...values])
    expect(linted).toContain('0 chart(s) failed')
    const { objects, configFile } = await install([], values, chart)
    expect(readConfigFile(configFile)).toEqual(readConfigFile(file))
    const read = (kind: string) => objects.find((object) => object.kind === kind)
    const { containers, terminationGracePeriodSeconds, volumes } = read('Deployment').spec.template.spec
    const names = containers[0].env
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => /^WEBMQ/.test(name))
    expect(names.toSorted()).toEqual([
      'WEBMQ_ADMIN_HOST',
      'WEBMQ_API_KEY_FILE',
      'WEBMQ_BROKER_FILE',
      'WEBMQ_JWT_SECRET_FILE',
    ])
    expect(terminationGracePeriodSeconds).toBeGreaterThan(5 + 25 + 2)
    const kustomization = parseDocuments(readFileSync(path.join(made, 'kustomization.yaml'), 'utf8'))[0]
    const secret = kustomization.secretGenerator.find(
      ({ name }: { name: string }) => name === volumes[1].secret.secretName,
    )
    expect(secret.files).toEqual(['secrets/broker', 'secrets/jwt-secret', 'secrets/api-key'])
    for (const { files } of [...kustomization.secretGenerator, ...kustomization.configMapGenerator])
      for (const each of files) expect(existsSync(path.join(made, each.split('=').at(-1))), each).toBe(true)
    expect(read('Ingress').metadata.annotations['cert-manager.io/cluster-issuer']).toBe('letsencrypt')
    const [rules] = parseDocuments(readFileSync(path.join(made, 'alerts.yaml'), 'utf8'))
    expect(rules.spec).toEqual(readYaml('deploy/prometheus/webmq.rules.yml'))
  })
})

function skipWithoutHelm(context: TestContext): void {
  if (missing !== undefined) context.skip(missing)
}

/** What `helm install webmq` would send. */
async function install(
  values: readonly string[],
  more: readonly string[] = [],
  chart = CHART,
): Promise<{ objects: Tree[]; configFile: string }> {
  const { stdout } = await run(helm, ['template', 'webmq', chart, ...sets(values), ...more])
  const objects = parseDocuments(stdout)
  const configFile = path.join(mkdtempSync(path.join(folder, 'config-')), 'webmq.json')
  writeFileSync(configFile, objects.find(({ kind }) => kind === 'ConfigMap').data['webmq.json'])
  return { objects, configFile }
}

function sets(values: readonly string[]): string[] {
  return values.flatMap((value) => ['--set', value])
}

/** Finds helm, or builds it once. Returns why there is none. */
async function obtainHelm(): Promise<string | undefined> {
  if (await run('helm', ['version']).catch(() => undefined)) return undefined
  const built = `${ROOT}.cache/helm/${HELM_VERSION}`
  helm = `${built}/helm`
  if (existsSync(helm)) return undefined
  if (!(await run('go', ['version']).catch(() => undefined))) return 'neither helm nor go is on PATH'
  mkdirSync(built, { recursive: true })
  const env = { ...process.env, GOBIN: built, GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false' }
  return await run('go', ['install', `helm.sh/helm/v3/cmd/helm@${HELM_VERSION}`], { env }).then(
    () => undefined,
    (error: Error) => `go does not build helm: ${error.message}`,
  )
}
