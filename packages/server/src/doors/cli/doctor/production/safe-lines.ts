import type { ProductionFolder } from './folder.js'
import { line, type SafeLine } from './safe-line.js'

const RULES_ADVICE = 'The rules of deploy/prometheus/webmq.rules.yml.'

const MONITORING_LINES: readonly SafeLine[] = [
  line(
    'alerts',
    'prometheus/prometheus.yml',
    /^ *- "?webmq\.rules\.yml"?$/m,
    'Prometheus does not load the rules of WebMQ',
    'rule_files: [webmq.rules.yml]',
  ),
  line(
    'alerts',
    'prometheus/prometheus.yml',
    /^ *- targets: \["[\w.-]+:9093"\]$/m,
    'Prometheus tells no Alertmanager',
    'alerting.alertmanagers with its address',
  ),
  line(
    'alerts',
    'prometheus/webmq.rules.yml',
    /^ *- alert: WebMQBrokerDown$/m,
    'the rules are not those of WebMQ',
    RULES_ADVICE,
  ),
  line(
    'alerts',
    'prometheus/alertmanager.yml',
    /^ *group_by: \[alertname\]$/m,
    'one outage is a message for each node',
    'group_by: [alertname]',
  ),
  line(
    'nodes',
    'prometheus/prometheus.yml',
    /job_name: "?webmq"?\n(?: {4,}.*\n)*? *- targets: \[("[^"]+", *){2,}"[^"]+"\]/,
    'Prometheus does not watch three nodes',
    'the admin ports of all nodes',
  ),
]

const PROXY_LINES: readonly SafeLine[] = [
  line(
    'proxy',
    'Caddyfile',
    /^\s*@operators path \/metrics .*\n\s*respond @operators 404$/m,
    'the proxy forwards /metrics',
    'respond @operators 404',
  ),
  line(
    'proxy',
    'Caddyfile',
    /^\s*health_uri \/ready$/m,
    'the proxy sends clients to nodes that are not ready',
    'health_uri /ready',
  ),
  line(
    'proxy',
    'Caddyfile',
    /^\s*header Strict-Transport-Security /m,
    'browsers may come without TLS',
    'header Strict-Transport-Security "max-age=31536000"',
  ),
  line('proxy', 'Caddyfile', /^[\w.-]+ \{$/m, 'the proxy serves no name by TLS', 'the host name alone before the {'),
  line(
    'nodes',
    'Caddyfile',
    /^\s*reverse_proxy( \S+:\d+){3,} \{$/m,
    'the proxy has fewer than three nodes',
    'the addresses of all nodes behind reverse_proxy',
  ),
]

export const OF_KIND: Readonly<Record<ProductionFolder['kind'], readonly SafeLine[]>> = {
  systemd: [
    ...PROXY_LINES,
    ...MONITORING_LINES,
    line(
      'nodes',
      'systemd/webmq.target',
      /^Wants=(webmq@\d+\.service ?){3,}$/m,
      'fewer than three nodes are started',
      'Wants=webmq@1.service webmq@2.service webmq@3.service',
    ),
    line(
      'nodes',
      'systemd/webmq@.service',
      /^Restart=(always|on-failure)$(?![\s\S]*^Restart=)/m,
      'a node that crashes stays away',
      'Restart=always',
    ),
  ],
  compose: [...PROXY_LINES, ...MONITORING_LINES],
  helm: [
    line('nodes', 'values.yaml', /^replicas: ([3-9]|\d{2,})$/m, 'fewer than three nodes are started', 'replicas: 3'),
    line('proxy', 'values.yaml', /^ {2}tlsSecret: [\w-]+$/m, 'the Ingress has no TLS', 'tlsSecret: webmq-tls'),
    line('alerts', 'alerts.yaml', /^ *- alert: WebMQBrokerDown$/m, 'the rules are not those of WebMQ', RULES_ADVICE),
    line(
      'alerts',
      'alerts.yaml',
      /^ *groupBy: \[alertname\]$/m,
      'one outage is a message for each node',
      'groupBy: [alertname]',
    ),
  ],
}

export const HOLDS: Readonly<Record<string, string>> = {
  persistence: 'the broker keeps what it has acknowledged',
  'broker access': 'the nodes alone, with their rights',
  alerts: 'the rules are loaded, and an outage is one message',
  proxy: 'it asks whether nodes are ready, and forwards no metrics',
  nodes: 'three of them, known to proxy and Prometheus',
}
