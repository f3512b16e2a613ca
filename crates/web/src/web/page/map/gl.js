// Owns how the map is drawn by WebGL2: one instance for each folder and file, and only what changed
// is sent to the graphics card.

import { BYTES } from "./paint.js";

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec4 place;
layout(location = 1) in vec4 state;
uniform vec3 camera;
uniform vec2 room;
out vec2 at;
flat out vec2 size;
flat out vec4 what;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 from = floor(place.xy * camera.z + camera.xy);
  vec2 to = floor((place.xy + place.zw) * camera.z + camera.xy);
  vec2 gap = vec2(to.x - from.x > 3.0 ? 1.0 : 0.0, to.y - from.y > 3.0 ? 1.0 : 0.0);
  size = place.z > 0.0 ? max(to - from - gap, vec2(1.0)) : vec2(0.0);
  at = corner * size;
  what = state;
  vec2 clip = (from + at) / room * 2.0 - 1.0;
  gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
flat in vec2 size;
flat in vec4 what;
uniform vec3 cold, warm, hot, ink, edge, folder, alarm;
uniform vec3 agents[8];
uniform float ratio;
uniform bool isFolder;
out vec4 color;
float shape(int mark, vec2 p) {
  vec2 q = abs(p);
  if (mark == 1) return length(p) - 0.8;
  if (mark == 2) return max(q.x * 0.9 + p.y * -0.5 - 0.4, p.y - 0.7);
  if (mark == 3) return max(q.x, q.y) - 0.72;
  if (mark == 4) return q.x + q.y - 0.95;
  if (mark == 5) return min(max(q.x - 0.9, q.y - 0.3), max(q.y - 0.9, q.x - 0.3));
  if (mark == 6) return length(p) - (0.6 + 0.32 * cos(5.0 * atan(p.x, -p.y)));
  return max(q.x * 0.9 + p.y * 0.5 - 0.4, -p.y - 0.7);
}
void main() {
  vec2 rest = min(at, size - at);
  float border = min(rest.x, rest.y) / ratio;
  if (isFolder) {
    color = vec4(border < 1.0 ? edge : folder, 1.0);
    return;
  }
  float heat = what.x / 255.0;
  int flags = int(what.y + 0.5);
  vec3 agent = agents[int(what.z + 0.5)];
  vec3 fill = heat <= 0.0 ? cold : heat < 0.5 ? mix(cold, warm, 0.25 + heat * 1.5) : mix(warm, hot, heat * 2.0 - 1.0);
  vec2 dots = size / ratio;
  float least = min(dots.x, dots.y);
  if (least < 7.0) {
    if ((flags & 4) != 0) fill = alarm;
    else if ((flags & 8) != 0) fill = ink;
    color = vec4(fill, 1.0);
    return;
  }
  float thick = least > 24.0 ? 2.0 : 1.0;
  if ((flags & 4) != 0 && mod(floor((at.x + at.y) / ratio), 8.0) < 2.0) fill = alarm;
  vec2 corner = (size - at) / ratio;
  if ((flags & 2) != 0 && corner.x + corner.y < min(14.0, least * 0.45)) fill = ink;
  if ((flags & 1) != 0 && border < thick) fill = agent;
  if ((flags & 8) != 0 && border >= thick + 1.0 && border < thick * 2.0 + 1.0 && mod(floor((at.x - at.y) / ratio), 6.0) < 3.0) fill = ink;
  int mark = int(what.w + 0.5);
  if (mark > 0 && least > 11.0) {
    float r = min(5.0, least * 0.28);
    vec2 p = (at / ratio - (thick + 2.0 + r)) / r;
    if (max(abs(p.x), abs(p.y)) < 1.5) {
      float d = shape(mark, p);
      if (d < 0.34) fill = cold;
      if (d < 0.0) fill = agent;
    }
  }
  color = vec4(fill, 1.0);
}`;

/** Above this number of changed files all are sent at once. */
const MOST_PIECES = 400;

export class GlPainter {
  /**
   * @param {boolean} isForced whether to draw so where a processor plays the graphics card, too
   * @returns {GlPainter | null} null if there is no WebGL2, or none that is faster than a plain canvas
   */
  static on(canvas, isForced = false) {
    const gl = canvas.getContext("webgl2", {
      antialias: false,
      alpha: false,
      powerPreference: "low-power",
      failIfMajorPerformanceCaveat: !isForced,
    });
    if (!gl || (!isForced && isSlow(gl))) return null;
    try {
      return new GlPainter(gl);
    } catch {
      return null;
    }
  }

  constructor(gl) {
    this.gl = gl;
    this.program = programOf(gl);
    this.uniforms = new Map();
    this.files = this.instances();
    this.folders = this.instances();
    this.folderCount = 0;
    this.capacity = 0;
  }

  get isLost() {
    return this.gl.isContextLost();
  }

  instances() {
    const { gl } = this;
    const it = { array: gl.createVertexArray(), places: gl.createBuffer(), states: gl.createBuffer() };
    gl.bindVertexArray(it.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, it.places);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 4, gl.FLOAT, false, 16, 0);
    gl.vertexAttribDivisor(0, 1);
    gl.bindBuffer(gl.ARRAY_BUFFER, it.states);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, false, BYTES, 0);
    gl.vertexAttribDivisor(1, 1);
    return it;
  }

  setFolders(folders) {
    const { gl } = this;
    const places = new Float32Array(folders.length * 4);
    folders.forEach((it, at) => places.set([it.x, it.y, it.w, it.h], at * 4));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.folders.places);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.folders.states);
    gl.bufferData(gl.ARRAY_BUFFER, folders.length * BYTES, gl.STATIC_DRAW);
    this.folderCount = folders.length;
  }

  /** Sends places and states; `moved` and `changed` name the slots, null stands for all. */
  send(places, states, count, moved, changed) {
    if (states.length !== this.capacity) moved = changed = null;
    this.capacity = states.length;
    this.piecewise(this.files.places, places, 4, moved, count);
    this.piecewise(this.files.states, states, BYTES, changed, count);
  }

  piecewise(buffer, values, width, slots, count) {
    const { gl } = this;
    if (slots && !slots.size) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    if (!slots) return gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    if (slots.size > MOST_PIECES) return gl.bufferSubData(gl.ARRAY_BUFFER, 0, values, 0, count * width);
    const step = width * values.BYTES_PER_ELEMENT;
    for (const slot of slots) gl.bufferSubData(gl.ARRAY_BUFFER, slot * step, values, slot * width, width);
  }

  draw(camera, width, height, ratio, count, theme) {
    const { gl } = this;
    gl.viewport(0, 0, width, height);
    gl.clearColor(...theme.rgb.ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.uniform3f(this.at("camera"), camera.x * ratio, camera.y * ratio, camera.scale * ratio);
    gl.uniform2f(this.at("room"), width, height);
    gl.uniform1f(this.at("ratio"), ratio);
    const { rgb } = theme;
    for (const [name, color] of [
      ["cold", rgb.file],
      ["warm", rgb.warm],
      ["hot", rgb.hot],
      ["ink", rgb.ink],
      ["edge", rgb.edge],
      ["folder", rgb.folder],
      ["alarm", rgb.alarm],
    ])
      gl.uniform3fv(this.at(name), color);
    gl.uniform3fv(this.at("agents"), theme.agentsRgb.flat());
    for (const [it, isFolder, instances] of [
      [this.folders, 1, this.folderCount],
      [this.files, 0, count],
    ]) {
      if (!instances) continue;
      gl.uniform1i(this.at("isFolder"), isFolder);
      gl.bindVertexArray(it.array);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, instances);
    }
  }

  at(name) {
    if (!this.uniforms.has(name)) this.uniforms.set(name, this.gl.getUniformLocation(this.program, name));
    return this.uniforms.get(name);
  }
}

/** Whether a processor plays the graphics card; not every browser says so by itself. */
function isSlow(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

function programOf(gl) {
  const program = gl.createProgram();
  for (const [type, text] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS))
    throw new Error(gl.getProgramInfoLog(program) ?? "shader");
  return program;
}
