import type { Kind, Values } from './kinds.js'

/** Lines that depend on what was given, in the form of each kind; without it a comment says how to get them. */
export interface Given {
  readonly hasCertificate: boolean
  readonly alerts: string | undefined
  readonly traces: string | undefined
}

/** A hundredth of the traces: all of them would cost more than the messages. */
const SAMPLED: readonly (readonly [string, string])[] = [
  ['OTEL_TRACES_SAMPLER', 'parentbased_traceidratio'],
  ['OTEL_TRACES_SAMPLER_ARG', '0.01'],
]
const WHY_SAMPLED = 'A hundredth of the traces of publishes: all of them would cost more than the messages.'
const NO_TRACES = 'Traces: webmq-server init --traces URL, of a collector that takes OTLP over HTTP.'
const NO_ALERTS = '# Nobody is told yet: webmq-server init --alerts URL, or a receiver of Alertmanager here.'

/** A word of a unit of systemd: within quotes, and `%` is a specifier there. */
const wordOfUnit = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`

/** The same in a command, which takes variables. */
export const wordOfCommand = (text: string) =>
  /^[\w./+-]+$/.test(text) ? text : wordOfUnit(text).replaceAll('$', '$$$$')

/** A string of YAML, for Compose and for variables of Kubernetes: both put variables for `$`. */
const textOfVariable = (text: string) => JSON.stringify(text).replaceAll('$', '$$$$')

export function linesOf(kind: Kind, given: Given): Values {
  return { ...(kind === 'helm' ? {} : TLS_OF_CADDY(given)), ...OF_KIND[kind](given) }
}

const TLS_OF_CADDY = ({ hasCertificate }: Given): Values => ({
  TLS: hasCertificate
    ? '# The files of --cert and --key. Restart the proxy after a renewal.\n\ttls {$CREDENTIALS_DIRECTORY}/tls.crt {$CREDENTIALS_DIRECTORY}/tls.key'
    : "# Caddy obtains a certificate of Let's Encrypt and renews it; ports 80 and 443 must be reachable for that.",
})

/** A receiver in the file of Alertmanager itself. */
const receiver = ({ alerts }: Given): string =>
  alerts === undefined ? `    ${NO_ALERTS}` : `    webhook_configs:\n      - url: ${JSON.stringify(alerts)}`

/** Variables with the line of each, or comments. */
function traces(
  { traces: url }: Given,
  indent: string,
  form: (pairs: readonly (readonly [string, string])[]) => string,
): string {
  if (url === undefined) return `${indent}# ${NO_TRACES}`
  return `${indent}# ${WHY_SAMPLED}\n${form([['OTEL_EXPORTER_OTLP_ENDPOINT', url], ...SAMPLED])}`
}

const OF_KIND: Readonly<Record<Kind, (given: Given) => Values>> = {
  systemd: (given) => ({
    TLS_CREDENTIALS: given.hasCertificate
      ? 'LoadCredential=tls.crt:@FOLDER@/secrets/tls.crt\nLoadCredential=tls.key:@FOLDER@/secrets/tls.key'
      : '# Caddy obtains its certificate itself: no file to load.',
    TRACES: traces(given, '', (pairs) => `Environment=${pairs.map((pair) => wordOfUnit(pair.join('='))).join(' ')}`),
    RECEIVER: receiver(given),
  }),
  compose: (given) => ({
    TLS_SECRETS: given.hasCertificate ? 'tls.crt, tls.key' : '',
    TLS_CREDENTIALS: given.hasCertificate
      ? '  tls.crt: { file: ./secrets/tls.crt }\n  tls.key: { file: ./secrets/tls.key }'
      : '  # Caddy obtains its certificate itself: no file to mount.',
    TRACES: traces(given, '    ', (pairs) =>
      pairs.map(([name, value]) => `    ${name}: ${textOfVariable(value)}`).join('\n'),
    ),
    RECEIVER: receiver(given),
  }),
  helm: (given) => ({
    TLS_SECRETS: given.hasCertificate
      ? '  - name: webmq-tls\n    type: kubernetes.io/tls\n    files:\n      - secrets/tls.crt\n      - secrets/tls.key'
      : '  # webmq-tls is made by cert-manager.',
    TLS_CREDENTIALS: given.hasCertificate
      ? '  # webmq-tls is made of secrets/ by kustomization.yaml.'
      : '  annotations:\n    # cert-manager obtains the certificate and renews it.\n    cert-manager.io/cluster-issuer: letsencrypt',
    CERT_MANAGER: given.hasCertificate ? '' : ', cert-manager with a ClusterIssuer named letsencrypt',
    TRACES: traces(given, '  ', (pairs) =>
      pairs.map(([name, value]) => `  - { name: ${name}, value: ${textOfVariable(value)} }`).join('\n'),
    ),
    RECEIVER:
      given.alerts === undefined
        ? `      ${NO_ALERTS}`
        : `      webhookConfigs:\n        - url: ${JSON.stringify(given.alerts)}`,
  }),
}
