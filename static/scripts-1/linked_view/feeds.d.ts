// What Python sends the linked view. Written by `python -m explorer.linked.living.declare` from
// explorer/linked/view/wire.py: change that file, not this one.

export interface Badge {
  passed: boolean;
  text: string;
  title: string;
  waits?: boolean;
}

export interface Spans {
  rows: [number, number][];
  columns: [number, number][];
}

export interface Names {
  rows: string[];
  columns: string[];
}

export interface Legend {
  title: string;
  marks: [string, string][];
}

export interface Hover {
  rows: string[];
  columns: string[];
  masked: string;
  later: string;
}

export interface Choice {
  name: string;
  label: string;
  size: [number, number];
  head: [number, number];
  roles: string[][];
  first: string;
  only?: [number, number][];
}

export interface MapFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  badge: Badge;
  kind: string;
  hue: string;
  rows: string;
  columns: string;
  spans: Spans;
  names: Names;
  sentences: string[][];
  absent: string;
  notes: Record<number, string>;
  legend: Legend | null;
  quantity: string;
  limit: string;
  scale: string;
  off?: boolean;
  draw: "map";
  figure: string;
  hover: Hover;
  head: [number, number];
  acts: string[];
  fade: boolean;
  largest: number;
  choice: Choice | null;
}

export interface Packed {
  dtype: string;
  bdata: string;
  shape?: string;
}

export interface LineHead {
  name: string;
  color: string;
  dash: string;
}

export interface LinesFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  badge: Badge;
  kind: string;
  hue: string;
  rows: string;
  columns: string;
  spans: Spans;
  names: Names;
  sentences: string[][];
  absent: string;
  notes: Record<number, string>;
  legend: Legend | null;
  quantity: string;
  limit: string;
  scale: string;
  off?: boolean;
  draw: "lines";
  labels: Names;
  values: Packed;
  links: [number, number, number, number][];
  heads: LineHead[];
  fade: boolean;
  largest: number;
}

export interface StrongestFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  badge: Badge;
  kind: string;
  hue: string;
  rows: string;
  columns: string;
  spans: Spans;
  names: Names;
  sentences: string[][];
  absent: string;
  notes: Record<number, string>;
  legend: Legend | null;
  quantity: string;
  limit: string;
  scale: string;
  off?: boolean;
  draw: "strongest";
  listed: number;
  labels: Names;
  values: Packed;
  shades: Packed;
  direction: string;
}

export interface WholeFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  draw: "whole";
  kind: string;
  hue: string;
  rows: string;
  columns: string;
  spans: Spans;
  figure: string;
  largest: number;
}

export interface BarsFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  draw: "bars";
  figure: string;
  follows: string;
  height: number | null;
  largest: number;
  spans: [number, number][] | null;
  hue?: string;
  joins?: boolean;
}

export interface RaceFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  draw: "race";
  follows: string;
  puts: string;
  names: string[][];
  shares: string[][];
  logs: Packed;
  chosen: number[];
  ids: (number | null)[][];
  tried: number[][];
}

export interface TilesFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  badge: Badge;
  draw: "tiles";
  figure: string;
  picks: string;
  hue: string;
  height: number;
  legend: Legend | null;
}

export interface WallFeed {
  trace: string;
  silent?: boolean;
  title: string;
  about: string;
  caption: string;
  alt: string;
  alts?: string[];
  badge: Badge;
  draw: "wall";
  picks: string;
  hue: string;
  size: [number, number];
  cells: Packed;
}

export interface HeadRow {
  name: string;
  heads: [number, number][];
}

export interface RankingFeed {
  trace: string;
  silent?: boolean;
  draw: "ranking";
  head: [number, number];
  aligned: boolean;
  groups: HeadRow[];
  numbers: string[][];
  notes: string[][];
  order: string;
}

export interface Gloss {
  text: string;
  origin: string;
}

export interface Chip {
  text: string;
  first: number;
  last: number;
  gap: boolean;
  special: boolean;
  index: number | null;
  gloss: Gloss | null;
  shade?: number;
  title?: string;
  role?: string;
}

export interface PositionNames {
  step: string;
  source: string;
}

export interface Directions {
  source: string;
  target: string;
}

export interface TokenNames {
  source: string[];
  reads: string[];
  predicts: string[];
}

export interface Stop {
  plot: string;
  text: string;
  step: number | null;
}

export interface StepClaim {
  step: number;
  text: string;
}

export interface StripsFeed {
  trace: string;
  silent?: boolean;
  draw: "strips";
  steps: number;
  source: Chip[];
  target: Chip[];
  sides: Record<string, string>;
  positions: PositionNames;
  begins: string;
  given: number;
  direction: Directions;
  names: TokenNames;
  follow: number[];
  tour: Stop[];
  claim: StepClaim | null;
  glossed: string;
}

export interface ProofFeed {
  trace: string;
  silent?: boolean;
  draw: "proof";
  badges: Record<string, Badge>;
}

export type Feed =
  | MapFeed
  | LinesFeed
  | StrongestFeed
  | WholeFeed
  | BarsFeed
  | RaceFeed
  | TilesFeed
  | WallFeed
  | RankingFeed
  | StripsFeed;
