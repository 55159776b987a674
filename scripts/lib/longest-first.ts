import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Approximate seconds of the longest files, for a fresh clone without a last run. */
const USUAL_SECONDS: Readonly<Record<string, number>> = {
  'test/site/site.test.ts': 110,
  'packages/bench/test/scenarios.test.ts': 100,
  'test/checker/checker.test.ts': 100,
  'packages/bench/test/history.test.ts': 60,
  'packages/bench/test/benchmark.test.ts': 60,
  'test/history/rabbitmq.test.ts': 60,
  'packages/outbox-postgres/test/outbox.test.ts': 45,
  'packages/server/test/brokers/lost-end-rabbitmq.test.ts': 50,
  'packages/server/test/brokers/redis-promotion.test.ts': 40,
  'packages/server/test/brokers/rabbitmq-faults.test.ts': 40,
  'packages/server/test/brokers/streams.test.ts': 40,
  'test/clients/conformance.test.ts': 40,
  'test/history/nats.test.ts': 40,
  'test/history/redis.test.ts': 40,
  'test/docs/shell.test.ts': 36,
  'test/streams/nats.test.ts': 36,
  'packages/server/test/brokers/redis-faults.test.ts': 35,
  'packages/transport-uws/test/conformance.test.ts': 33,
  'test/admin.test.ts': 32,
  'packages/server/test/brokers/rabbitmq-operators.test.ts': 30,
  'packages/server/test/brokers/rabbitmq-broker.test.ts': 30,
  'packages/server/test/streams-http.test.ts': 30,
  'test/queue-groups.test.ts': 30,
  'test/history/mesh.test.ts': 30,
  'packages/server/test/brokers/nats-log.test.ts': 28,
  'test/docs/recipes.test.ts': 28,
  'packages/server/test/brokers/mesh-faults.test.ts': 25,
  'packages/server/test/brokers/nats-faults.test.ts': 25,
  'packages/server/test/brokers/rabbitmq-refusals.test.ts': 25,
  'packages/server/src/features/queue-groups/silent-nodes.test.ts': 25,
  'packages/server/test/transports/native.test.ts': 24,
  'packages/server/test/brokers/nats-broker.test.ts': 23,
  'packages/server/test/brokers/stopping.test.ts': 22,
  'packages/server/test/brokers/behind.test.ts': 22,
  'packages/server/test/transports/ten-thousand.test.ts': 22,
  'packages/server/test/transports/native-threads.test.ts': 20,
  'test/checker/clients.test.ts': 20,
  'test/history/memory.test.ts': 20,
}

/**
 * Shorter files stay with those of their project: a worker that changes the project loads the server anew, about a second
 * of CPU time.
 */
const LONG_SECONDS = 15

/**
 * Starts the longest files of a group first, so that no worker ends long after the others. vitest itself does so only
 * within a project. The short ones follow by project: a worker keeps its modules while the next file is of the same one,
 * and otherwise begins anew.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const costs = new Map(files.map((file) => [file, this.#seconds(file)]))
    const secondsOf = (file: TestSpecification) => costs.get(file) ?? 0
    const isLong = (file: TestSpecification) => secondsOf(file) >= LONG_SECONDS
    const longest = (one: TestSpecification, other: TestSpecification) => secondsOf(other) - secondsOf(one)
    const short = files.filter((file) => !isLong(file)).sort(longest)
    const projects = [...new Set(short.map(({ project }) => project))]
    return [
      ...files.filter(isLong).sort(longest),
      ...projects.flatMap((project) => short.filter((file) => file.project === project)),
    ]
  }

  #seconds({ project, moduleId }: TestSpecification): number {
    const file = path.relative(this.ctx.config.root, moduleId)
    const lastRun = this.ctx.cache.getFileTestResults(`${project.name}:${file}`)
    return lastRun === undefined ? (USUAL_SECONDS[file] ?? 0) : lastRun.duration / 1_000
  }
}
