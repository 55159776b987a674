import { expect, it, type TestContext } from 'vitest'
import { readConfigFile } from '../../packages/server/src/doors/cli/config-file.js'
import { unknownVariables } from '../../packages/server/src/doors/cli/option-sources.js'
import { resolveOptions } from '../../packages/server/src/doors/options/options.js'
import { readText, type Tree } from './files.js'

/** From the signal to the exit a server takes as long as its drain, and at most this. */
export const STOP_S = 2
export const DRAIN_S = resolveOptions({}).drainTimeoutMs / 1_000

/** So long may an answer to a probe take. */
export const ANSWER_S = 10
/** So long may a node answer nothing before it is restarted. */
export const SILENT_S = 90
/** So long may a node take to answer for the first time. */
export const START_S = 120

/** What an installation sends to Kubernetes. */
export interface Installation {
  readonly objects: readonly Tree[]
  /** Path of the `webmq.json` that the pods get. */
  readonly configFile: string
}

/** Tests of the manifests of an installation with everything on, by whatever tool. @param load May skip the test. */
export function testKubernetes(load: (context: TestContext) => Installation): void {
  function parts(context: TestContext) {
    const { objects, configFile } = load(context)
    const read = (kind: string) => {
      const found = objects.filter((object) => object.kind === kind)
      expect(found, kind).toHaveLength(1)
      return found[0]
    }
    const pod = read('Deployment').spec.template
    const options = Object.fromEntries(readConfigFile(configFile))
    return { read, pod, container: pod.spec.containers[0], options }
  }

  it('selects the pods of WebMQ and no others', (context) => {
    const { read, pod } = parts(context)
    const { labels } = pod.metadata
    expect(labels).toMatchObject({ 'app.kubernetes.io/name': 'webmq' })
    expect(read('Deployment').spec.selector.matchLabels).toEqual(labels)
    expect(read('Service').spec.selector).toEqual(labels)
    expect(read('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels)
    expect(read('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels)
    expect(read('PodMonitor').spec.selector.matchLabels).toEqual(labels)
    for (const { labelSelector } of pod.spec.topologySpreadConstraints)
      expect(labelSelector.matchLabels).toEqual(labels)
    const { name } = read('Deployment').metadata
    expect(read('HorizontalPodAutoscaler').spec.scaleTargetRef).toMatchObject({ kind: 'Deployment', name })
    const [{ backend }] = read('Ingress').spec.rules[0].http.paths
    expect(backend.service).toEqual({ name: read('Service').metadata.name, port: { name: 'http' } })
  })

  it('leaves balancers the time to notice that a pod leaves, and the time for the whole drain', (context) => {
    const { pod, container, options } = parts(context)
    const { terminationGracePeriodSeconds, enableServiceLinks } = pod.spec
    const delayS = Number(options.drainDelayMs) / 1_000
    const { periodSeconds, failureThreshold } = container.readinessProbe
    expect(delayS).toBeGreaterThan(periodSeconds * failureThreshold)
    expect(terminationGracePeriodSeconds).toBeGreaterThan(delayS + DRAIN_S + STOP_S)
    // The variables of a service named webmq begin with WEBMQ_.
    expect(enableServiceLinks).toBe(false)
  })

  it('probes the admin port, which the config file opens, and restarts nothing when a broker is away', (context) => {
    const { read, container, options } = parts(context)
    expect(options.adminHost).toBe('0.0.0.0')
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const path = probe === 'readinessProbe' ? '/ready' : '/health'
      expect(container[probe].httpGet).toEqual({ path, port: 'admin' })
    }
    expect(read('Service').spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort)).toEqual(['http'])
  })

  // Symptom: a node whose thread of JavaScript stood still for half a minute was restarted, and its clients moved. Cause:
  // a liveness probe with the thresholds of Kubernetes.
  it('restarts a node after 90 s without any answer, and gives it two minutes to start', (context) => {
    const { startupProbe, livenessProbe, readinessProbe } = parts(context).container
    for (const { timeoutSeconds } of [startupProbe, livenessProbe]) expect(timeoutSeconds).toBe(ANSWER_S)
    expect(livenessProbe.periodSeconds * livenessProbe.failureThreshold).toBe(SILENT_S)
    expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBe(START_S)
    // Otherwise a question would be asked while the one before waits.
    expect(readinessProbe.timeoutSeconds).toBeLessThanOrEqual(readinessProbe.periodSeconds)
  })

  it('lets Prometheus ask the admin port of the pods', (context) => {
    const { read, container } = parts(context)
    const [{ port, path }] = read('PodMonitor').spec.podMetricsEndpoints
    expect(container.ports.map(({ name }: { name: string }) => name)).toContain(port)
    expect([port, path]).toEqual(['admin', '/metrics'])
  })

  it('has options that the server knows, at the paths of the image', (context) => {
    const { container } = parts(context)
    const names: string[] = container.env.map(({ name }: { name: string }) => name)
    expect(names).toContain('WEBMQ_JWT_SECRET_FILE')
    expect(unknownVariables(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([])
    const [config] = container.volumeMounts
    expect(readText('Dockerfile')).toContain(`WEBMQ_CONFIG=${config.mountPath}/webmq.json`)
  })
}
