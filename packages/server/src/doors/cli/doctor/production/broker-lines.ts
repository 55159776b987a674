import { line, type SafeLine } from './safe-line.js'

/** By the file that says which broker it is. */
export const BROKER_LINES: Readonly<Record<string, readonly SafeLine[]>> = {
  'redis.conf': [
    line(
      'persistence',
      'redis.conf',
      /^appendonly yes$/m,
      'Redis has what it took only in its memory',
      'appendonly yes',
    ),
    line(
      'persistence',
      'redis.conf',
      /^appendfsync always$/m,
      'Redis acknowledges what is not on its disk yet',
      'appendfsync always',
    ),
    line(
      'persistence',
      'redis.conf',
      /^maxmemory-policy noeviction$/m,
      'Redis removes the log when its memory is full',
      'maxmemory-policy noeviction',
    ),
    line('persistence', 'redis.conf', /^maxmemory [1-9]/m, 'Redis takes all memory of the machine', 'maxmemory 1gb'),
    line(
      'persistence',
      'secrets/redis-password.conf',
      /^requirepass \S{16}/m,
      'Redis has no password, or a short one',
      'requirepass and 16 characters or more',
    ),
  ],
  'nats.conf': [
    line(
      'persistence',
      'nats.conf',
      /^ *sync_interval: always$/m,
      'NATS acknowledges what is not on its disk yet',
      'sync_interval: always',
    ),
    line('persistence', 'secrets/broker', /[?&]replicas=[35]\b/, 'one server alone has the log', '?replicas=3'),
    line(
      'persistence',
      'secrets/nats-access.conf',
      /^authorization \{ user: \w+, password: "\S{16,}" \}$/m,
      'NATS has no password, or a short one',
      'authorization with a password of 16 characters or more',
    ),
  ],
  'rabbitmq.conf': [
    line(
      'persistence',
      'rabbitmq.conf',
      /^cluster_partition_handling = pause_minority$/m,
      'two sides of a broken network go on by themselves',
      'cluster_partition_handling = pause_minority',
    ),
    line(
      'persistence',
      'rabbitmq.conf',
      /^cluster_formation\.classic_config\.nodes\.3 = \S+$/m,
      'fewer than three servers have the log',
      'cluster_formation.classic_config.nodes.1, .2 and .3',
    ),
    line(
      'persistence',
      'rabbitmq.conf',
      /^disk_free_limit\.absolute = [1-9]\d*GiB$/m,
      'RabbitMQ does not survive a full disk, and takes messages until it is',
      'disk_free_limit.absolute = 2GiB',
    ),
    line(
      'persistence',
      'rabbitmq.conf',
      /^vm_memory_high_watermark\.absolute = [1-9]\d*[MG]iB$/m,
      'three servers take all memory of the machine',
      'vm_memory_high_watermark.absolute = 1GiB',
    ),
    line(
      'persistence',
      'secrets/broker',
      /@[\w.-]+:\d+(,[\w.-]+:\d+){2,}/,
      'nodes do not know all three servers',
      'amqp://webmq:…@ and all of them',
    ),
    line(
      'broker access',
      'secrets/rabbitmq-access.conf',
      /^default_user = (?!guest$)\S+\ndefault_pass = \S{16}/m,
      'RabbitMQ has the user guest, no password, or a short one',
      'default_user = webmq, and default_pass with 16 characters or more',
    ),
    line(
      'broker access',
      'secrets/erlang-cookie',
      /^\S{20}/,
      'who guesses the cookie commands the servers',
      'a random text of 20 characters or more',
    ),
    line(
      'broker access',
      'rabbitmq.conf',
      /^default_user_tags\.administrator = false$/m,
      'nodes may change users and settings of RabbitMQ',
      'default_user_tags.administrator = false',
    ),
    line(
      'broker access',
      'rabbitmq.conf',
      /^default_permissions\.configure = \^webmq$/m,
      'nodes may delete what others have in RabbitMQ',
      'default_permissions.configure = ^webmq',
    ),
    line(
      'alerts',
      'enabled_plugins',
      /^\[[^\]]*\brabbitmq_prometheus\b[^\]]*\]\.$/m,
      'RabbitMQ has no metrics',
      '[rabbitmq_management, rabbitmq_prometheus].',
    ),
  ],
  /** Where Prometheus is ours. */
  'prometheus/rabbitmq.rules.yml': [
    line(
      'alerts',
      'prometheus/prometheus.yml',
      /^ *- "?rabbitmq\.rules\.yml"?$/m,
      'Prometheus does not load the rules of RabbitMQ',
      'rule_files: [rabbitmq.rules.yml]',
    ),
    line(
      'alerts',
      'prometheus/prometheus.yml',
      /job_name: rabbitmq\n.*\n(?: *#.*\n)? *- targets: \[("[^"]+", *){2}"[^"]+"\]/,
      'Prometheus does not watch three servers of RabbitMQ',
      'a job rabbitmq with their ports of metrics',
    ),
  ],
  /** All on one machine. */
  'rabbitmq/server-1.conf': [
    ...[1, 2, 3].map((n) =>
      line(
        'broker access',
        `rabbitmq/server-${n}.conf`,
        /^listeners\.tcp\.1 = 127\.[\s\S]*^management\.tcp\.ip = 127\.[\s\S]*^prometheus\.tcp\.ip = 127\./m,
        `server ${n} is open for other machines`,
        'listeners.tcp.1, management.tcp.ip and prometheus.tcp.ip at 127.0.0.1',
      ),
    ),
    line(
      'broker access',
      'systemd/webmq-broker@.service',
      /^Environment=.*inet_dist_use_interface \{127,0,0,1\}/m,
      'other machines may try cookies',
      '-kernel inet_dist_use_interface {127,0,0,1}',
    ),
    line(
      'persistence',
      'systemd/webmq-broker@.service',
      /^ExecStartPost=-.* await_online_nodes 3$/m,
      'a node that starts first makes a log with one copy',
      'ExecStartPost with rabbitmqctl await_online_nodes 3',
    ),
  ],
  /** In a cluster of machines. */
  'broker-alerts.yaml': [
    line('alerts', 'kustomization.yaml', /^ *- broker-alerts\.yaml$/m, 'RabbitMQ has no alerts', 'broker-alerts.yaml'),
    line(
      'persistence',
      'broker.yaml',
      /^ {2}replicas: [3579]$/m,
      'fewer than three servers have the log',
      'replicas: 3',
    ),
  ],
}
