import type { Feature } from '../../feature.js'
import { Occupancy, type OccupancyContext, type OccupancyStats } from './occupancy.js'

export const occupancy = {
  metrics: {
    webmq_occupancy_patterns: 'occupiedCount: Patterns of `occupancy` that somebody listens with, on all nodes.',
    webmq_occupancy_waiting: 'waitingCount: Patterns of which this node has to tell the webhook something.',
    webmq_occupancy_dropped_total: 'droppedCount: Listens that are not told, because too many patterns are watched.',
  },
  open: (context: OccupancyContext) => new Occupancy(context),
} satisfies Feature<OccupancyContext, OccupancyStats>
