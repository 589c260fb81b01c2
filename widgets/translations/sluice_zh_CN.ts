<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en_US">
    <context>
        <name>QObject</name>
        <message>
            <source>Serves a language model, learns from verdicts, lets updates in through a gate.</source>
            <translation>提供语言模型服务,从判定中学习,更新须过闸门才能上线。</translation>
        </message>
        <message>
            <source>The workspace folder.</source>
            <translation>工作区文件夹。</translation>
        </message>
        <message>
            <source>A GGUF file or Hugging Face folder; default: the bundled model.</source>
            <translation>GGUF 文件或 Hugging Face 文件夹;默认:自带的模型。</translation>
        </message>
        <message>
            <source>Start the demo with this recipe.</source>
            <translation>用此方案开始演示。</translation>
        </message>
        <message>
            <source>Start the demo as soon as the model is loaded.</source>
            <translation>模型一加载完就启动演示。</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui</name>
        <message>
            <source>no data yet</source>
            <translation>还没有数据</translation>
        </message>
        <message>
            <source>%1 of %2 (%3 %)</source>
            <translation>%1 / %2(%3 %)</translation>
        </message>
        <message>
            <source>just now</source>
            <translation>刚才</translation>
        </message>
        <message>
            <source>%n min ago</source>
            <translation>%n 分钟前</translation>
        </message>
        <message>
            <source>%n h ago</source>
            <translation>%n 小时前</translation>
        </message>
        <message>
            <source>%n day(s) ago</source>
            <translation>%n 天前</translation>
        </message>
        <message>
            <source>v0 (base)</source>
            <translation>v0(基座)</translation>
        </message>
        <message>
            <source>candidate</source>
            <translation>候选</translation>
        </message>
        <message>
            <source>being measured</source>
            <translation>测量中</translation>
        </message>
        <message>
            <source>held</source>
            <translation>暂缓</translation>
        </message>
        <message>
            <source>serves a part</source>
            <translation>服务部分请求</translation>
        </message>
        <message>
            <source>in service</source>
            <translation>服务中</translation>
        </message>
        <message>
            <source>served before</source>
            <translation>曾经服务</translation>
        </message>
        <message>
            <source>rejected</source>
            <translation>已拒绝</translation>
        </message>
        <message>
            <source>overtaken</source>
            <translation>已被取代</translation>
        </message>
        <message>
            <source>taken out</source>
            <translation>已撤下</translation>
        </message>
        <message>
            <source>files deleted</source>
            <translation>文件已删除</translation>
        </message>
        <message>
            <source>deliberately bad</source>
            <translation>故意变差</translation>
        </message>
        <message>
            <source>half strength</source>
            <translation>减半强度</translation>
        </message>
        <message>
            <source>base</source>
            <translation>基础模型</translation>
        </message>
        <message>
            <source>waits for %1 labels (%2 here)</source>
            <translation>等待 %1 条标注(已有 %2 条)</translation>
        </message>
        <message>
            <source>makes step %1</source>
            <translation>正在做第 %1 步</translation>
        </message>
        <message>
            <source>is ahead of the gate and waits for it</source>
            <translation>领先于闸门,在等它</translation>
        </message>
        <message>
            <source>paused</source>
            <translation>已暂停</translation>
        </message>
        <message>
            <source>stopped by a brake</source>
            <translation>被刹车停住</translation>
        </message>
        <message>
            <source>failed</source>
            <translation>失败</translation>
        </message>
        <message>
            <source>ended</source>
            <translation>已结束</translation>
        </message>
        <message>
            <source>The gate stands still: the session is paused.</source>
            <translation>闸门停住:会话已暂停。</translation>
        </message>
        <message>
            <source>The gate stands still: serving is frozen, nothing is promoted.</source>
            <translation>闸门停住:服务已冻结,什么都不会上线。</translation>
        </message>
        <message>
            <source>waits for the next batch</source>
            <translation>等待下一批</translation>
        </message>
        <message>
            <source>used in a step</source>
            <translation>已用于训练</translation>
        </message>
        <message>
            <source>replaced by a newer one</source>
            <translation>被更新的判定取代</translation>
        </message>
        <message>
            <source>given before</source>
            <translation>先前已给出</translation>
        </message>
        <message>
            <source>too late to train</source>
            <translation>太晚,不参与训练</translation>
        </message>
        <message>
            <source>a step used the answer before</source>
            <translation>已有一步用过这个回答</translation>
        </message>
        <message>
            <source>kept out of training for evaluation</source>
            <translation>留作评估,不参与训练</translation>
        </message>
        <message>
            <source>does not train</source>
            <translation>不参与训练</translation>
        </message>
        <message>
            <source>in the batch at hand</source>
            <translation>在当前批次中</translation>
        </message>
        <message>
            <source>trained on</source>
            <translation>已训练</translation>
        </message>
        <message>
            <source>not trained: %1</source>
            <translation>未训练:%1</translation>
        </message>
        <message>
            <source>no verdict</source>
            <translation>没有判定</translation>
        </message>
        <message>
            <source>verdict too late</source>
            <translation>判定太晚</translation>
        </message>
        <message>
            <source>version too old</source>
            <translation>版本太旧</translation>
        </message>
        <message>
            <source>all rewards of the batch were equal</source>
            <translation>该批奖励全部相同</translation>
        </message>
        <message>
            <source>no vote of the judge</source>
            <translation>缺少评判</translation>
        </message>
        <message>
            <source>kept for evaluation</source>
            <translation>留作评估</translation>
        </message>
        <message>
            <source>request broke off</source>
            <translation>请求中断</translation>
        </message>
        <message>
            <source>cut by the budget</source>
            <translation>被字数上限截断</translation>
        </message>
        <message>
            <source>empty answer</source>
            <translation>空回答</translation>
        </message>
        <message>
            <source>no log-probabilities</source>
            <translation>没有对数概率</translation>
        </message>
        <message>
            <source>sampled without chance (temperature 0)</source>
            <translation>非随机采样(温度 0)</translation>
        </message>
        <message>
            <source>from elsewhere</source>
            <translation>来自别处</translation>
        </message>
        <message>
            <source>too far from the present policy</source>
            <translation>离当前策略太远</translation>
        </message>
        <message>
            <source>person</source>
            <translation>人</translation>
        </message>
        <message>
            <source>judge</source>
            <translation>评判</translation>
        </message>
        <message>
            <source>verifier</source>
            <translation>校验器</translation>
        </message>
        <message>
            <source>client</source>
            <translation>客户端</translation>
        </message>
        <message>
            <source>simulated user</source>
            <translation>模拟用户</translation>
        </message>
        <message>
            <source>empty</source>
            <translation>为空</translation>
        </message>
        <message>
            <source>not finished</source>
            <translation>没有说完</translation>
        </message>
        <message>
            <source>number of words</source>
            <translation>词数不合</translation>
        </message>
        <message>
            <source>number of characters</source>
            <translation>字符数不合</translation>
        </message>
        <message>
            <source>more than one line</source>
            <translation>多于一行</translation>
        </message>
        <message>
            <source>more than one paragraph</source>
            <translation>多于一段</translation>
        </message>
        <message>
            <source>mark-up</source>
            <translation>有标记格式</translation>
        </message>
        <message>
            <source>unwanted characters</source>
            <translation>有不要的字符</translation>
        </message>
        <message>
            <source>unwanted words</source>
            <translation>有不要的词</translation>
        </message>
        <message>
            <source>does not name the topic</source>
            <translation>没有提到主题</translation>
        </message>
        <message>
            <source>, </source>
            <translation>、</translation>
        </message>
        <message>
            <source>the budget</source>
            <translation>字数上限</translation>
        </message>
        <message>
            <source>itself</source>
            <translation>自身</translation>
        </message>
        <message>
            <source>cancelling</source>
            <translation>取消</translation>
        </message>
        <message>
            <source>an error</source>
            <translation>出错</translation>
        </message>
        <message>
            <source>session</source>
            <translation>会话</translation>
        </message>
        <message>
            <source>training</source>
            <translation>训练</translation>
        </message>
        <message>
            <source>gate</source>
            <translation>闸门</translation>
        </message>
        <message>
            <source>serving</source>
            <translation>服务</translation>
        </message>
        <message>
            <source>stream</source>
            <translation>数据流</translation>
        </message>
        <message>
            <source>HTTP</source>
            <translation>HTTP</translation>
        </message>
        <message>
            <source>model</source>
            <translation>模型</translation>
        </message>
        <message>
            <source>store</source>
            <translation>存储</translation>
        </message>
        <message>
            <source>command</source>
            <translation>命令</translation>
        </message>
        <message>
            <source>runs</source>
            <translation>运行中</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::Actions</name>
        <message>
            <source>%1 (%2)</source>
            <translation>%1(%2)</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::CommandPalette</name>
        <message>
            <source>Commands</source>
            <translation>命令</translation>
        </message>
        <message>
            <source>Type a part of a command</source>
            <translation>输入命令的一部分</translation>
        </message>
        <message>
            <source>Command</source>
            <translation>命令</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::CurvesPage</name>
        <message>
            <source>No session yet: run the demo or start one.</source>
            <translation>还没有会话:运行演示或新建一个。</translation>
        </message>
        <message>
            <source>by requests</source>
            <translation>按请求数</translation>
        </message>
        <message>
            <source>by minutes</source>
            <translation>按分钟</translation>
        </message>
        <message>
            <source>Horizontal axis</source>
            <translation>横轴</translation>
        </message>
        <message>
            <source>Smoothing</source>
            <translation>平滑</translation>
        </message>
        <message>
            <source>Of the strong lines, over every point; the pale line under each shows the points themselves, of the accept rate the mean of eight</source>
            <translation>作用于粗线,计入每个点;下面的浅线是点本身,接受率的浅线是八个点的平均</translation>
        </message>
        <message>
            <source>Appears after the first training step.</source>
            <translation>第一步训练之后出现。</translation>
        </message>
        <message>
            <source>Accept rate (last 32 requests; pale: last 8)</source>
            <translation>接受率(最近 32 个请求;浅线:最近 8 个)</translation>
        </message>
        <message>
            <source>The learning curve: appears with the first eight verdicts.</source>
            <translation>学习曲线:有八个判定后出现。</translation>
        </message>
        <message>
            <source>accepted</source>
            <translation>已接受</translation>
        </message>
        <message>
            <source>Rejection rate of the gate</source>
            <translation>闸门拒绝率</translation>
        </message>
        <message>
            <source>Appears after the first gate decision.</source>
            <translation>第一次闸门决定之后出现。</translation>
        </message>
        <message>
            <source>rejected / decided</source>
            <translation>拒绝 / 决定</translation>
        </message>
        <message>
            <source>Divergence (nats/token)</source>
            <translation>偏离(奈特/词元)</translation>
        </message>
        <message>
            <source>KL</source>
            <translation>KL</translation>
        </message>
        <message>
            <source>Mean reward of a batch</source>
            <translation>一批的平均奖励</translation>
        </message>
        <message>
            <source>reward</source>
            <translation>奖励</translation>
        </message>
        <message>
            <source>Loss</source>
            <translation>损失</translation>
        </message>
        <message>
            <source>loss</source>
            <translation>损失</translation>
        </message>
        <message>
            <source>Mean answer length (tokens)</source>
            <translation>平均回答长度(词元)</translation>
        </message>
        <message>
            <source>length</source>
            <translation>长度</translation>
        </message>
        <message>
            <source>Entropy (nats/token)</source>
            <translation>熵(奈特/词元)</translation>
        </message>
        <message>
            <source>entropy</source>
            <translation>熵</translation>
        </message>
        <message>
            <source>Share of tokens</source>
            <translation>词元占比</translation>
        </message>
        <message>
            <source>clipped</source>
            <translation>被裁剪</translation>
        </message>
        <message>
            <source>truncated</source>
            <translation>被截断</translation>
        </message>
        <message>
            <source>Generated tokens per second</source>
            <translation>每秒生成词元</translation>
        </message>
        <message>
            <source>Appears while requests run.</source>
            <translation>有请求时出现。</translation>
        </message>
        <message>
            <source>tokens/s</source>
            <translation>词元/秒</translation>
        </message>
        <message>
            <source>Jump to live</source>
            <translation>回到最新</translation>
        </message>
        <message>
            <source>“%1”, session %2, seed %3 · %4</source>
            <translation>“%1”,会话 %2,种子 %3 · %4</translation>
        </message>
        <message numerus="yes">
            <source>: %1 · %n point(s)</source>
            <translation>
                <numerusform>:%1 · %n 个点</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> · %n point(s), not enough for a rate yet</source>
            <translation>
                <numerusform> · %n 个点,还不足以算出比率</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 · line %2, dashes %3</source>
            <translation>%1 · 实线 %2,虚线 %3</translation>
        </message>
        <message>
            <source>%1: %2</source>
            <translation>%1:%2</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::GatePanel</name>
        <message>
            <source>Further limits</source>
            <translation>其他界限</translation>
        </message>
        <message>
            <source>Margin, evidence against harm, and what the answers to the probe prompts must keep</source>
            <translation>差距界限、损害的证据,以及对探测提示的回答必须保持的指标</translation>
        </message>
        <message>
            <source>Margin</source>
            <translation>差距界限</translation>
        </message>
        <message>
            <source>How much worse (a share of accepted answers) counts as worse. A change holds from the next candidate on.</source>
            <translation>接受率差多少才算更差。改动从下一个候选起生效。</translation>
        </message>
        <message>
            <source>Evidence of harm</source>
            <translation>损害的证据</translation>
        </message>
        <message>
            <source>A loss of the protected metric is proven, and the candidate rejected, when the bet on it has grown to this.</source>
            <translation>押注受保护指标变差的赌注增长到此值时,即视为损害已证实,候选被拒绝。</translation>
        </message>
        <message>
            <source>Loss against the anchor</source>
            <translation>相对锚定版本的损失</translation>
        </message>
        <message>
            <source>How much worse than the anchor counts as worse. A change holds from the next candidate on.</source>
            <translation>比锚定版本差多少才算更差。改动从下一个候选起生效。</translation>
        </message>
        <message>
            <source>Evidence against the anchor</source>
            <translation>相对锚定版本的证据</translation>
        </message>
        <message>
            <source>No promotion before the bet that the candidate is not worse than the anchor has grown to this.</source>
            <translation>押注候选不差于锚定版本的赌注增长到此值之前,不会上线。</translation>
        </message>
        <message>
            <source>Fewer finished answers</source>
            <translation>完整回答减少</translation>
        </message>
        <message>
            <source>On the probe prompts: how far the share of finished answers may lie below that of what serves.</source>
            <translation>在探测提示上:完整回答的比例最多可比在线版本低多少。</translation>
        </message>
        <message>
            <source>More answers cut</source>
            <translation>被截断的回答增多</translation>
        </message>
        <message>
            <source>How far the share of answers cut by the token limit may lie above that of what serves.</source>
            <translation>被令牌上限截断的回答比例最多可比在线版本高多少。</translation>
        </message>
        <message>
            <source>More empty answers</source>
            <translation>空回答增多</translation>
        </message>
        <message>
            <source>How far the share of empty answers may lie above that of what serves.</source>
            <translation>空回答的比例最多可比在线版本高多少。</translation>
        </message>
        <message>
            <source>Shortest mean length</source>
            <translation>最短平均长度</translation>
        </message>
        <message>
            <source>Mean length of the answers, at least so many times that of what serves and of the base.</source>
            <translation>回答的平均长度至少为在线版本和基础模型的这么多倍。</translation>
        </message>
        <message>
            <source>Longest mean length</source>
            <translation>最长平均长度</translation>
        </message>
        <message>
            <source>Mean length of the answers, at most so many times that of what serves and of the base.</source>
            <translation>回答的平均长度最多为在线版本和基础模型的这么多倍。</translation>
        </message>
        <message>
            <source>Variety</source>
            <translation>多样性</translation>
        </message>
        <message>
            <source>Different groups of three tokens, at least so many times those of what serves.</source>
            <translation>不同的三令牌组合至少为在线版本的这么多倍。</translation>
        </message>
        <message>
            <source>Repeated answers, times</source>
            <translation>重复回答(倍数)</translation>
        </message>
        <message>
            <source>Equal answers, at most so many times those of what serves, and the share below on top.</source>
            <translation>相同的回答最多为在线版本的这么多倍,另加下面的比例。</translation>
        </message>
        <message>
            <source>Repeated answers, share</source>
            <translation>重复回答(比例)</translation>
        </message>
        <message>
            <source>Share of equal answers allowed on top.</source>
            <translation>额外允许的相同回答的比例。</translation>
        </message>
        <message>
            <source>Time between tokens</source>
            <translation>令牌间隔时间</translation>
        </message>
        <message>
            <source>At most so many times that of what serves.</source>
            <translation>最多为在线版本的这么多倍。</translation>
        </message>
        <message>
            <source>Serving against training</source>
            <translation>服务与训练的差异</translation>
        </message>
        <message>
            <source>Mean difference of the log-probabilities that serving and training compute for one probe answer.</source>
            <translation>服务与训练对同一个探测回答计算出的对数概率的平均差。</translation>
        </message>
        <message>
            <source>Risk of a wrong promotion</source>
            <translation>误上线的风险</translation>
        </message>
        <message>
            <source>Chance to promote a candidate that is worse by the margin or more (alpha). Smaller asks for more evidence.</source>
            <translation>把差出界限的候选放上线的概率(alpha)。越小,需要的证据越多。</translation>
        </message>
        <message>
            <source>Risk of a wrong rejection</source>
            <translation>误拒绝的风险</translation>
        </message>
        <message>
            <source>Chance to reject a candidate that is better by the margin or more (beta).</source>
            <translation>把好出界限的候选拒绝的概率(beta)。</translation>
        </message>
        <message>
            <source>Least pairs</source>
            <translation>最少对数</translation>
        </message>
        <message>
            <source>No verdict before so many prompts were answered by both.</source>
            <translation>双方都答过这么多提示之前不作判定。</translation>
        </message>
        <message>
            <source>Most pairs</source>
            <translation>最多对数</translation>
        </message>
        <message>
            <source>Without a verdict by then the candidate is held.</source>
            <translation>到那时仍无判定,候选即暂缓。</translation>
        </message>
        <message>
            <source>Loss of the protected metric</source>
            <translation>受保护指标的损失</translation>
        </message>
        <message>
            <source>A proven loss of this much (a share) rejects, however good the rest is; a promotion needs it excluded.</source>
            <translation>证实损失这么多(比例)即拒绝,其余再好也不行;要晋升则须排除这样的损失。</translation>
        </message>
        <message>
            <source>Risk to the protected metric</source>
            <translation>对受保护指标的风险</translation>
        </message>
        <message>
            <source>Chance to promote a candidate that loses this much of the protected metric. At 1 no evidence is asked for.</source>
            <translation>晋升一个在受保护指标上损失这么多的候选的概率。取 1 则不要求证据。</translation>
        </message>
        <message>
            <source>Divergence from the base</source>
            <translation>与基座的偏离</translation>
        </message>
        <message>
            <source>Nats per token on the probe prompts; above it the candidate is rejected unmeasured.</source>
            <translation>探测提示上每词元的奈特数;超出则不经测量直接拒绝。</translation>
        </message>
        <message>
            <source>Divergence from what serves</source>
            <translation>与在服务版本的偏离</translation>
        </message>
        <message>
            <source>Nats per token on the probe prompts, against the version in service.</source>
            <translation>探测提示上每词元的奈特数,与在服务的版本相比。</translation>
        </message>
        <message>
            <source>Measuring now</source>
            <translation>正在测量</translation>
        </message>
        <message>
            <source>E grows with evidence that the candidate is not worse, F with evidence that it is not better. Promoted when E reaches its limit, rejected when F does; valid at whatever moment anyone looks.</source>
            <translation>候选不更差的证据使 E 增长,不更好的证据使 F 增长。E 到界限即上线,F 到界限即拒绝;无论何时查看都有效。</translation>
        </message>
        <message>
            <source>%v of at most %m pairs</source>
            <translation>%v 对,最多 %m 对</translation>
        </message>
        <message>
            <source>Thresholds</source>
            <translation>阈值</translation>
        </message>
        <message>
            <source>Why (goes into the record)</source>
            <translation>理由(会记录下来)</translation>
        </message>
        <message>
            <source>Reason of the change</source>
            <translation>改动的理由</translation>
        </message>
        <message>
            <source>Apply</source>
            <translation>应用</translation>
        </message>
        <message>
            <source>Holds from the next decision on, also for the candidate being measured (Ctrl+Return)</source>
            <translation>从下一个决定起生效,正在测量的候选也包括在内(Ctrl+Return)</translation>
        </message>
        <message>
            <source>Discard</source>
            <translation>放弃</translation>
        </message>
        <message>
            <source>was %1</source>
            <translation>原为 %1</translation>
        </message>
        <message>
            <source>Verdicts, newest first</source>
            <translation>判定,最新在前</translation>
        </message>
        <message>
            <source>Move a threshold to see what it would have done to past decisions.</source>
            <translation>移动一个阈值,看看它会怎样改变过去的决定。</translation>
        </message>
        <message>
            <source>No past decision to compare with yet.</source>
            <translation>还没有过去的决定可比。</translation>
        </message>
        <message>
            <source>Over %1 past decisions: would have rejected %2, recorded %3; %4 differ, %5 would need more pairs.</source>
            <translation>过去 %1 个决定:会拒绝 %2 个,记录为 %3 个;%4 个不同,%5 个需要更多对。</translation>
        </message>
        <message>
            <source>Applying …</source>
            <translation>正在应用…</translation>
        </message>
        <message>
            <source>No candidate waits. The trainer hands one over every few updates.</source>
            <translation>没有候选在等。训练器每隔几次更新交来一个。</translation>
        </message>
        <message>
            <source>%1: checking divergence, length and repetition on the probe prompts</source>
            <translation>%1:正在探测提示上检查偏离、长度和重复</translation>
        </message>
        <message>
            <source>%1 against %2, which serves, on held-out prompts</source>
            <translation>%1 对在服务的 %2,用留出的提示</translation>
        </message>
        <message>
            <source>Accepted: candidate %1, in service %2. Difference between %3 and %4 points.</source>
            <translation>接受:候选 %1,在服务 %2。差异在 %3 与 %4 个百分点之间。</translation>
        </message>
        <message>
            <source>E %1 of %2 to promote · F %3 of %4 to reject</source>
            <translation>E %1 / %2 上线 · F %3 / %4 拒绝</translation>
        </message>
        <message>
            <source>None yet: the first comes a few updates into a session.</source>
            <translation>还没有:会话开始几次更新之后会有第一个。</translation>
        </message>
        <message>
            <source>Rejected %1 of the candidates with a final verdict; held: %2.</source>
            <translation>有最终判定的候选中拒绝了 %1;暂缓:%2。</translation>
        </message>
        <message>
            <source>%1: %2 instead of %3</source>
            <translation>%1:%2(原为 %3)</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::InfoBar</name>
        <message>
            <source>Note</source>
            <translation>备注</translation>
        </message>
        <message>
            <source>Attention</source>
            <translation>注意</translation>
        </message>
        <message>
            <source>Error</source>
            <translation>错误</translation>
        </message>
        <message>
            <source>Dismiss</source>
            <translation>关闭</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::InspectPage</name>
        <message>
            <source>Try it</source>
            <translation>试一试</translation>
        </message>
        <message>
            <source>Type a prompt. Ctrl+Return asks the version in service.</source>
            <translation>输入提示。Ctrl+Return 询问在服务的版本。</translation>
        </message>
        <message>
            <source>Prompt</source>
            <translation>提示</translation>
        </message>
        <message>
            <source>Ask</source>
            <translation>询问</translation>
        </message>
        <message>
            <source>A live request with a receipt: you can label it, and the label trains</source>
            <translation>带回执的真实请求:您可以标注它,标注会用于训练</translation>
        </message>
        <message>
            <source>Ask both</source>
            <translation>两边都问</translation>
        </message>
        <message>
            <source>The same prompt and seed to both versions; such probes never train</source>
            <translation>同样的提示和种子问两个版本;这种探测从不用于训练</translation>
        </message>
        <message>
            <source>Left version</source>
            <translation>左侧版本</translation>
        </message>
        <message>
            <source>Right version</source>
            <translation>右侧版本</translation>
        </message>
        <message>
            <source>Left answer</source>
            <translation>左侧回答</translation>
        </message>
        <message>
            <source>Right answer</source>
            <translation>右侧回答</translation>
        </message>
        <message>
            <source>✓ Accept</source>
            <translation>✓ 接受</translation>
        </message>
        <message>
            <source>✕ Reject</source>
            <translation>✕ 拒绝</translation>
        </message>
        <message>
            <source>The answer appears here.</source>
            <translation>回答显示在这里。</translation>
        </message>
        <message>
            <source>With “Ask both”, or with two records chosen below, the second one appears here.</source>
            <translation>用“两边都问”,或在下面选两条记录,第二个显示在这里。</translation>
        </message>
        <message>
            <source>Records</source>
            <translation>记录</translation>
        </message>
        <message>
            <source>Search prompts and answers</source>
            <translation>搜索提示和回答</translation>
        </message>
        <message>
            <source>Older</source>
            <translation>更早的</translation>
        </message>
        <message>
            <source>Type a prompt first.</source>
            <translation>请先输入提示。</translation>
        </message>
        <message>
            <source>Waiting for the answer …</source>
            <translation>正在等待回答…</translation>
        </message>
        <message numerus="yes">
            <source>%1 · %n token(s) · %2 s · ended by %3</source>
            <translation>
                <numerusform>%1 · %n 个词元 · %2 秒 · 结束于%3</numerusform>
            </translation>
        </message>
        <message>
            <source>Probes: they never train.</source>
            <translation>探测:从不用于训练。</translation>
        </message>
        <message>
            <source>Receipt %1</source>
            <translation>回执 %1</translation>
        </message>
        <message>
            <source>Accepted (%1)</source>
            <translation>已接受(%1)</translation>
        </message>
        <message>
            <source>Rejected (%1)</source>
            <translation>已拒绝(%1)</translation>
        </message>
        <message>
            <source>Nothing found</source>
            <translation>没有找到</translation>
        </message>
        <message numerus="yes">
            <source>%n shown</source>
            <translation>
                <numerusform>显示 %n 条</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 · %2
%3</source>
            <translation>%1 · %2
%3</translation>
        </message>
        <message>
            <source>Choose a second record to compare (Ctrl+click).</source>
            <translation>再选一条记录来比较(Ctrl+单击)。</translation>
        </message>
        <message>
            <source>Words only on the left are struck out, words only on the right underlined.</source>
            <translation>只在左边的词加删除线,只在右边的词加下划线。</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::IntakeCard</name>
        <message>
            <source>Records appear with the first request.</source>
            <translation>有第一个请求后出现记录。</translation>
        </message>
        <message>
            <source>No session runs.</source>
            <translation>没有会话在运行。</translation>
        </message>
        <message>
            <source>Run the demo, or start a session (Ctrl+N).</source>
            <translation>运行演示,或新建会话(Ctrl+N)。</translation>
        </message>
        <message>
            <source>‖ “%1” is paused</source>
            <translation>‖ “%1”已暂停</translation>
        </message>
        <message>
            <source>▶ “%1” runs</source>
            <translation>▶ “%1”运行中</translation>
        </message>
        <message>
            <source>request %1 of %2</source>
            <translation>请求 %1 / %2</translation>
        </message>
        <message numerus="yes">
            <source>%n request(s)</source>
            <translation>
                <numerusform>%n 个请求</numerusform>
            </translation>
        </message>
        <message>
            <source>live only: traffic and verdicts come from clients and you</source>
            <translation>只有真实流量:请求和判定来自客户端和您</translation>
        </message>
        <message>
            <source>the simulated user is through</source>
            <translation>模拟用户已完成</translation>
        </message>
        <message>
            <source>%1 failed</source>
            <translation>%1 个失败</translation>
        </message>
        <message>
            <source>trainer: %1</source>
            <translation>训练器:%1</translation>
        </message>
        <message>
            <source>trainer stopped: %1</source>
            <translation>训练器已停止:%1</translation>
        </message>
        <message numerus="yes">
            <source>%n answer(s) kept</source>
            <translation>
                <numerusform>保存了 %n 个回答</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n verdict(s): %1 accepted, %2 rejected</source>
            <translation>
                <numerusform>%n 个判定:接受 %1,拒绝 %2</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 trained on, %2 wait for the next batch</source>
            <translation>%1 个已用于训练,%2 个等下一批</translation>
        </message>
        <message>
            <source>%1 not trained: %2</source>
            <translation>%1 个未训练:%2</translation>
        </message>
        <message>
            <source>can&apos;t go on: %1</source>
            <translation>无法继续:%1</translation>
        </message>
        <message>
            <source>■ “%1” is through</source>
            <translation>■ “%1”已完成</translation>
        </message>
        <message>
            <source>the last candidate is judged: end the session (Shift+F5) to start another</source>
            <translation>最后一个候选已有裁决:结束会话(Shift+F5)后可另开一个</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LabelPage</name>
        <message>
            <source>Accept (A)</source>
            <translation>接受 (A)</translation>
        </message>
        <message>
            <source>Reject (X)</source>
            <translation>拒绝 (X)</translation>
        </message>
        <message>
            <source>Skip (S)</source>
            <translation>跳过 (S)</translation>
        </message>
        <message>
            <source>Undo (U)</source>
            <translation>撤销 (U)</translation>
        </message>
        <message>
            <source>Your last ten decisions</source>
            <translation>您最近的十个判定</translation>
        </message>
        <message>
            <source>%1 to label (newest first) · %2 decided here · %3 skipped</source>
            <translation>待标注 %1(最新在前) · 此处已判定 %2 · 跳过 %3</translation>
        </message>
        <message>
            <source>%1 decided here · %2 skipped</source>
            <translation>此处已判定 %1 · 跳过 %2</translation>
        </message>
        <message>
            <source>Replies to label appear here.</source>
            <translation>待标注的回答显示在这里。</translation>
        </message>
        <message>
            <source>Send a request to the server, use “Try it”, or start a session: every answer can be labelled. Your verdicts train the next update.</source>
            <translation>向服务器发一个请求、用“试一试”或新建会话:每个回答都可以标注。您的判定会用于下一次更新。</translation>
        </message>
        <message>
            <source>Not saved: %1 The reply stays here; try again.</source>
            <translation>没有保存:%1 回答留在这里,请再试。</translation>
        </message>
        <message>
            <source>Not taken back: %1</source>
            <translation>没有收回:%1</translation>
        </message>
        <message>
            <source>✓ accepted</source>
            <translation>✓ 已接受</translation>
        </message>
        <message>
            <source>✕ rejected</source>
            <translation>✕ 已拒绝</translation>
        </message>
        <message>
            <source>%1 · %2 · %3</source>
            <translation>%1 · %2 · %3</translation>
        </message>
        <message>
            <source>used in step %1</source>
            <translation>用于第 %1 步</translation>
        </message>
        <message>
            <source>Step %1 used this reply meanwhile: your verdict counts for rates, not for training.</source>
            <translation>第 %1 步已用了这条回复:你的判定只计入比率,不再用于训练。</translation>
        </message>
        <message>
            <source>Show the skipped again (G)</source>
            <translation>再看跳过的 (G)</translation>
        </message>
        <message>
            <source>Only the replies that you skipped are left.</source>
            <translation>只剩您跳过的回答。</translation>
        </message>
        <message>
            <source>G shows them again, U only the one that you skipped last.</source>
            <translation>按 G 重新显示全部,按 U 只取回最后跳过的一个。</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LaneView</name>
        <message>
            <source>Adapter timeline</source>
            <translation>适配器时间线</translation>
        </message>
        <message>
            <source>The base serves.</source>
            <translation>基座在服务。</translation>
        </message>
        <message numerus="yes">
            <source>%1 serves; %n version(s).</source>
            <translation>
                <numerusform>%1 在服务;共 %n 个版本。</numerusform>
            </translation>
        </message>
        <message>
            <source>In service</source>
            <translation>在服务</translation>
        </message>
        <message>
            <source>Candidates</source>
            <translation>候选</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LogModel</name>
        <message>
            <source>✕ error</source>
            <translation>✕ 错误</translation>
        </message>
        <message>
            <source>! warning</source>
            <translation>! 警告</translation>
        </message>
        <message>
            <source>Time</source>
            <translation>时间</translation>
        </message>
        <message>
            <source>Severity</source>
            <translation>级别</translation>
        </message>
        <message>
            <source>Part</source>
            <translation>部分</translation>
        </message>
        <message>
            <source>What happened</source>
            <translation>发生了什么</translation>
        </message>
        <message>
            <source>note</source>
            <translation>消息</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LogPage</name>
        <message>
            <source>Everything</source>
            <translation>全部</translation>
        </message>
        <message>
            <source>Warnings and errors</source>
            <translation>警告和错误</translation>
        </message>
        <message>
            <source>Errors</source>
            <translation>错误</translation>
        </message>
        <message>
            <source>Least severity</source>
            <translation>最低级别</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>日志</translation>
        </message>
        <message>
            <source>Show</source>
            <translation>显示</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::MainWindow</name>
        <message>
            <source>Sluice</source>
            <translation>Sluice</translation>
        </message>
        <message>
            <source>Resuming …</source>
            <translation>正在继续…</translation>
        </message>
        <message>
            <source>Opening the workspace …</source>
            <translation>正在打开工作区…</translation>
        </message>
        <message>
            <source>View</source>
            <translation>视图</translation>
        </message>
        <message>
            <source>Session</source>
            <translation>会话</translation>
        </message>
        <message>
            <source>Serving</source>
            <translation>服务</translation>
        </message>
        <message>
            <source>File</source>
            <translation>文件</translation>
        </message>
        <message>
            <source>&amp;Start page</source>
            <translation>起始页(&amp;S)</translation>
        </message>
        <message>
            <source>&amp;Operate</source>
            <translation>运行(&amp;O)</translation>
        </message>
        <message>
            <source>&amp;Inspect</source>
            <translation>查看(&amp;I)</translation>
        </message>
        <message>
            <source>&amp;Label</source>
            <translation>标注(&amp;L)</translation>
        </message>
        <message>
            <source>Run the &amp;demo</source>
            <translation>运行演示(&amp;D)</translation>
        </message>
        <message>
            <source>&amp;New session …</source>
            <translation>新建会话(&amp;N)…</translation>
        </message>
        <message>
            <source>&amp;Pause session</source>
            <translation>暂停会话(&amp;P)</translation>
        </message>
        <message>
            <source>Pausing …</source>
            <translation>正在暂停…</translation>
        </message>
        <message>
            <source>&amp;End session</source>
            <translation>结束会话(&amp;E)</translation>
        </message>
        <message>
            <source>Ending the session …</source>
            <translation>正在结束会话…</translation>
        </message>
        <message>
            <source>&amp;Freeze serving</source>
            <translation>冻结服务(&amp;F)</translation>
        </message>
        <message>
            <source>Serve the &amp;base and freeze learning</source>
            <translation>改用基座并冻结学习(&amp;B)</translation>
        </message>
        <message>
            <source>&amp;Roll back to the selected version …</source>
            <translation>回滚到所选版本(&amp;R)…</translation>
        </message>
        <message>
            <source>&amp;Apply the gate draft</source>
            <translation>应用闸门草稿(&amp;A)</translation>
        </message>
        <message>
            <source>Show &amp;log</source>
            <translation>显示日志(&amp;L)</translation>
        </message>
        <message>
            <source>Use &amp;model …</source>
            <translation>选用模型(&amp;M)…</translation>
        </message>
        <message>
            <source>Choose &amp;port …</source>
            <translation>选择端口(&amp;P)…</translation>
        </message>
        <message>
            <source>Export &amp;curves …</source>
            <translation>导出曲线(&amp;C)…</translation>
        </message>
        <message>
            <source>&amp;Quit</source>
            <translation>退出(&amp;Q)</translation>
        </message>
        <message>
            <source>Modes</source>
            <translation>模式</translation>
        </message>
        <message>
            <source>Sluice – %1</source>
            <translation>Sluice – %1</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>日志</translation>
        </message>
        <message>
            <source>No workspace is open.</source>
            <translation>没有打开的工作区。</translation>
        </message>
        <message>
            <source>Loading the model</source>
            <translation>正在加载模型</translation>
        </message>
        <message>
            <source>Ready</source>
            <translation>就绪</translation>
        </message>
        <message>
            <source>Paused</source>
            <translation>已暂停</translation>
        </message>
        <message>
            <source>Running</source>
            <translation>运行中</translation>
        </message>
        <message>
            <source>No model</source>
            <translation>没有模型</translation>
        </message>
        <message>
            <source>Stopping</source>
            <translation>正在停止</translation>
        </message>
        <message>
            <source>%1 serves</source>
            <translation>%1 在服务</translation>
        </message>
        <message>
            <source>%1 tokens/s</source>
            <translation>%1 词元/秒</translation>
        </message>
        <message numerus="yes">
            <source>%n request(s) running</source>
            <translation>
                <numerusform>%n 个请求进行中</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n error(s)</source>
            <translation>
                <numerusform>%n 个错误</numerusform>
            </translation>
        </message>
        <message>
            <source>Session paused: stream, trainer and gate stand still; serving goes on. F8 resumes.</source>
            <translation>会话已暂停:数据流、训练器和闸门停住,服务照常。按 F8 继续。</translation>
        </message>
        <message>
            <source>Serving frozen: nothing is promoted until you unfreeze (F9).</source>
            <translation>服务已冻结:解冻(F9)之前没有任何版本上线。</translation>
        </message>
        <message>
            <source>Choose port …</source>
            <translation>选择端口…</translation>
        </message>
        <message>
            <source>Training stopped: %1</source>
            <translation>训练已停止:%1</translation>
        </message>
        <message>
            <source>Go on</source>
            <translation>继续</translation>
        </message>
        <message>
            <source>The model is not loaded yet.</source>
            <translation>模型尚未加载。</translation>
        </message>
        <message>
            <source>No session runs.</source>
            <translation>没有会话在运行。</translation>
        </message>
        <message>
            <source>A session is open already: end it first.</source>
            <translation>已有一个会话:请先结束它。</translation>
        </message>
        <message>
            <source>A session runs on this model: end it first.</source>
            <translation>有会话正在使用这个模型:请先结束它。</translation>
        </message>
        <message>
            <source>The gate draft holds no change.</source>
            <translation>闸门草稿没有改动。</translation>
        </message>
        <message>
            <source>&amp;Resume session</source>
            <translation>继续会话(&amp;R)</translation>
        </message>
        <message>
            <source>Un&amp;freeze serving</source>
            <translation>解冻服务(&amp;F)</translation>
        </message>
        <message>
            <source>The curve at the top left should rise within minutes. On the right: move a threshold and apply it. Below: choose a version that served and roll back. In “Label” (Ctrl+3) your own verdicts train the next update.</source>
            <translation>左上的曲线几分钟内就会上升。右侧:移动一个阈值并应用。下方:选一个服务过的版本并回滚。在“标注”(Ctrl+3)里,您自己的判定会用于下一次更新。</translation>
        </message>
        <message>
            <source>Starting the demo …</source>
            <translation>正在启动演示…</translation>
        </message>
        <message>
            <source>Starting the session …</source>
            <translation>正在启动会话…</translation>
        </message>
        <message>
            <source>Use a model</source>
            <translation>选用模型</translation>
        </message>
        <message>
            <source>Models (*.gguf *.safetensors *.safetensors.index.json)</source>
            <translation>模型 (*.gguf *.safetensors *.safetensors.index.json)</translation>
        </message>
        <message>
            <source>Reading the header of %1 …</source>
            <translation>正在读取 %1 的文件头…</translation>
        </message>
        <message>
            <source>%1 Nothing was loaded.</source>
            <translation>%1 没有加载任何东西。</translation>
        </message>
        <message>
            <source>Loading %1 …</source>
            <translation>正在加载 %1…</translation>
        </message>
        <message>
            <source>Open workspace</source>
            <translation>打开工作区</translation>
        </message>
        <message>
            <source>Port</source>
            <translation>端口</translation>
        </message>
        <message>
            <source>Port of the HTTP server on this machine (0 = any free one):</source>
            <translation>本机 HTTP 服务器的端口(0 = 任意空闲端口):</translation>
        </message>
        <message>
            <source>Starting the server …</source>
            <translation>正在启动服务器…</translation>
        </message>
        <message>
            <source>Unfreezing …</source>
            <translation>正在解冻…</translation>
        </message>
        <message>
            <source>Freezing …</source>
            <translation>正在冻结…</translation>
        </message>
        <message>
            <source>Going back to the base …</source>
            <translation>正在回到基座…</translation>
        </message>
        <message>
            <source>Undo (serve %1)</source>
            <translation>撤销(改用 %1)</translation>
        </message>
        <message>
            <source>Undo of the roll-back to %1</source>
            <translation>撤销到 %1 的回滚</translation>
        </message>
        <message>
            <source>Undoing …</source>
            <translation>正在撤销…</translation>
        </message>
        <message>
            <source>Export %1 into a new folder below</source>
            <translation>把 %1 导出到其下的新文件夹</translation>
        </message>
        <message>
            <source>Exporting …</source>
            <translation>正在导出…</translation>
        </message>
        <message>
            <source>Export curves</source>
            <translation>导出曲线</translation>
        </message>
        <message>
            <source>Tables (*.csv)</source>
            <translation>表格 (*.csv)</translation>
        </message>
        <message>
            <source>Every point is in %1.</source>
            <translation>所有的点都在 %1 里。</translation>
        </message>
        <message>
            <source>%1 can&apos;t be written: %2</source>
            <translation>无法写入 %1:%2</translation>
        </message>
        <message>
            <source>Finishing the current step …

Every answer and verdict is saved. A session that runs now can be resumed at the next start.</source>
            <translation>正在完成当前这一步…

所有回答和判定都已保存。正在运行的会话下次启动时可以继续。</translation>
        </message>
        <message>
            <source>Finishing the current step …</source>
            <translation>正在完成当前这一步…</translation>
        </message>
        <message>
            <source>“%1” is open and can&apos;t go on: %2 Resume (F8) tries again; Shift+F5 ends it.</source>
            <translation>“%1”尚未结束,但无法继续:%2 按 F8(继续)再试一次;按 Shift+F5 结束它。</translation>
        </message>
        <message>
            <source>Show &amp;sessions</source>
            <translation>显示会话(&amp;S)</translation>
        </message>
        <message>
            <source>&amp;Commands …</source>
            <translation>命令(&amp;C)…</translation>
        </message>
        <message>
            <source>Sessions</source>
            <translation>会话</translation>
        </message>
        <message>
            <source>Stop now</source>
            <translation>立即停止</translation>
        </message>
        <message>
            <source>The step in hand is lost and made again at the next start; nothing else is.</source>
            <translation>只会丢失手头的一步,下次启动时重做;其他都不会丢失。</translation>
        </message>
        <message numerus="yes">
            <source>Training waits for you: it is %n step(s) ahead of what serves, and the gate has nothing left to measure.</source>
            <translation>
                <numerusform>训练在等你:已比在线版本领先 %n 步,闸门也没有可测的候选了。</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Training waits for you: the gate could not decide on %n candidate(s), which are held (%1), and has nothing left to measure. Promote or reject by hand, train on to the next candidate, or discard what was learnt since %2.</source>
            <translation>
                <numerusform>训练在等你:闸门对 %n 个候选无法判定,已暂缓(%1),也没有可测的候选了。请手动上线或拒绝,继续训练到下一个候选,或丢弃自 %2 以来学到的。</numerusform>
            </translation>
        </message>
        <message>
            <source>, </source>
            <translation>、</translation>
        </message>
        <message>
            <source>Your &amp;name …</source>
            <translation>你的名字(&amp;N)…</translation>
        </message>
        <message>
            <source>Decide on %1 …</source>
            <translation>判定 %1 …</translation>
        </message>
        <message>
            <source>Train on</source>
            <translation>继续训练</translation>
        </message>
        <message>
            <source>Training on …</source>
            <translation>正在继续训练 …</translation>
        </message>
        <message>
            <source>Discard the steps</source>
            <translation>丢弃这些步</translation>
        </message>
        <message>
            <source>Discarding …</source>
            <translation>正在丢弃 …</translation>
        </message>
        <message>
            <source>This model needs %1.</source>
            <translation>此模型需要 %1。</translation>
        </message>
        <message>
            <source>This model needs %1; %2 are free.</source>
            <translation>此模型需要 %1;可用 %2。</translation>
        </message>
        <message>
            <source>%1 of an earlier run serves: this run starts from it, and its curve where that one ended. To see it learn from nothing, roll back to the base or open a new workspace.</source>
            <translation>在线的是之前运行的 %1:这次从它开始,曲线接着上次结束的地方。想看从零学起,请回滚到基础模型,或打开新的工作区。</translation>
        </message>
        <message>
            <source>Roll back to the base …</source>
            <translation>回滚到基础模型 …</translation>
        </message>
        <message>
            <source>Your name</source>
            <translation>你的名字</translation>
        </message>
        <message>
            <source>Your decisions and labels are kept with this name (empty = your login name):</source>
            <translation>你的判定和标注会记在这个名字下(留空 = 登录名):</translation>
        </message>
        <message>
            <source>unfrozen in the workbench</source>
            <translation>在工作台解冻</translation>
        </message>
        <message>
            <source>frozen in the workbench</source>
            <translation>在工作台冻结</translation>
        </message>
        <message>
            <source>base served and learning frozen in the workbench</source>
            <translation>在工作台改由基础模型服务并冻结学习</translation>
        </message>
        <message>
            <source>Through</source>
            <translation>已完成</translation>
        </message>
        <message>
            <source>The demo “%1” is through: its requests are answered, and the last candidate is judged.</source>
            <translation>演示“%1”已完成:请求都已回答,最后一个候选已有裁决。</translation>
        </message>
        <message>
            <source>Accepted at first: %1; at last: %2.</source>
            <translation>接受率:开始时 %1;最后 %2。</translation>
        </message>
        <message>
            <source>%1 serves on; your own verdicts still train.</source>
            <translation>%1 继续服务;您自己的判定仍会用于训练。</translation>
        </message>
        <message>
            <source>End session</source>
            <translation>结束会话</translation>
        </message>
        <message>
            <source>%1 (Warnings before it, in the log: %2)</source>
            <translation>%1(日志中在它之前的警告:%2)</translation>
        </message>
        <message>
            <source>Show log</source>
            <translation>显示日志</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::RecordModel</name>
        <message>
            <source>✓ accepted (%1)</source>
            <translation>✓ 已接受(%1)</translation>
        </message>
        <message>
            <source>✕ rejected (%1)</source>
            <translation>✕ 已拒绝(%1)</translation>
        </message>
        <message>
            <source>✕ rejected (%1: %2)</source>
            <translation>✕ 已拒绝(%1:%2)</translation>
        </message>
        <message>
            <source>score %1 (%2)</source>
            <translation>评分 %1(%2)</translation>
        </message>
        <message>
            <source>– silent (%1)</source>
            <translation>– 无反馈(%1)</translation>
        </message>
        <message>
            <source>trained in step %1</source>
            <translation>用于第 %1 步训练</translation>
        </message>
        <message>
            <source>When</source>
            <translation>时间</translation>
        </message>
        <message>
            <source>Prompt</source>
            <translation>提示</translation>
        </message>
        <message>
            <source>Answer</source>
            <translation>回答</translation>
        </message>
        <message>
            <source>Adapter</source>
            <translation>适配器</translation>
        </message>
        <message>
            <source>Verdict</source>
            <translation>判定</translation>
        </message>
        <message>
            <source>Fate</source>
            <translation>去向</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::RollBackSheet</name>
        <message>
            <source>the version in service</source>
            <translation>在服务的版本</translation>
        </message>
        <message>
            <source>Roll back to %1</source>
            <translation>回滚到 %1</translation>
        </message>
        <message>
            <source>&lt;p&gt;&lt;b&gt;%1 will serve instead of %2.&lt;/b&gt;&lt;/p&gt;&lt;p&gt;Requests that run now finish on the version they began with. Training goes on from the checkpoint of %1. This is a decision with your name and note on it, and it can be undone.&lt;/p&gt;</source>
            <translation>&lt;p&gt;&lt;b&gt;%1 将代替 %2 提供服务。&lt;/b&gt;&lt;/p&gt;&lt;p&gt;正在进行的请求由开始时的版本完成。训练从 %1 的检查点继续。这是带有您的名字和备注的决定,可以撤销。&lt;/p&gt;</translation>
        </message>
        <message>
            <source>Rolled back from %1 to %2 by hand</source>
            <translation>由人工从 %1 回滚到 %2</translation>
        </message>
        <message>
            <source>What the gate said of %1: %2</source>
            <translation>闸门对 %1 的说法:%2</translation>
        </message>
        <message>
            <source>Note</source>
            <translation>备注</translation>
        </message>
        <message>
            <source>Roll back</source>
            <translation>回滚</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::Say</name>
        <message>
            <source>%1 is loaded.</source>
            <translation>已加载 %1。</translation>
        </message>
        <message>
            <source>The server listens on %1.</source>
            <translation>服务器监听 %1。</translation>
        </message>
        <message>
            <source>“%1” runs.</source>
            <translation>“%1”在运行。</translation>
        </message>
        <message>
            <source>The session runs.</source>
            <translation>会话在运行。</translation>
        </message>
        <message>
            <source>Paused: stream, trainer and gate stand still; %1 serves on.</source>
            <translation>已暂停:数据流、训练器和闸门都停住;%1 继续服务。</translation>
        </message>
        <message>
            <source>The session runs again; learning stands still until you unfreeze.</source>
            <translation>会话继续运行;解冻之前学习停住。</translation>
        </message>
        <message>
            <source>The session runs again.</source>
            <translation>会话继续运行。</translation>
        </message>
        <message>
            <source>The session ended; %1 serves on.</source>
            <translation>会话已结束;%1 继续服务。</translation>
        </message>
        <message>
            <source>Gate settings %1 hold from the next decision on.</source>
            <translation>闸门设置 %1 从下一次决定起生效。</translation>
        </message>
        <message>
            <source>The base serves; nothing is learnt or promoted until you unfreeze.</source>
            <translation>基础模型在服务;解冻之前不学习、不上线。</translation>
        </message>
        <message>
            <source>Saved.</source>
            <translation>已保存。</translation>
        </message>
        <message>
            <source>A step used this label already; the retraction counts for rates, the step stays.</source>
            <translation>已有一步用过这条标注;撤回计入比率,该步保留。</translation>
        </message>
        <message>
            <source>Taken back.</source>
            <translation>已撤回。</translation>
        </message>
        <message>
            <source>The adapter is in %1.</source>
            <translation>适配器已导出到 %1。</translation>
        </message>
        <message>
            <source>Training goes on; it asks again when it is as far ahead once more.</source>
            <translation>训练继续;再领先这么多步时会再问。</translation>
        </message>
        <message>
            <source>Training goes on from %1, which serves; what was learnt since is left.</source>
            <translation>训练从在线的 %1 继续;此后学到的已放弃。</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::SessionDialog</name>
        <message>
            <source>New session</source>
            <translation>新建会话</translation>
        </message>
        <message>
            <source>%1 (%2)</source>
            <translation>%1(%2)</translation>
        </message>
        <message>
            <source>Same seed, same conditions: the same run</source>
            <translation>同样的种子和条件:同样的过程</translation>
        </message>
        <message>
            <source>As the recipe says</source>
            <translation>按方案</translation>
        </message>
        <message>
            <source>demo: quick, not for claims</source>
            <translation>demo:快,不作结论之用</translation>
        </message>
        <message>
            <source>standard</source>
            <translation>标准</translation>
        </message>
        <message>
            <source>strict</source>
            <translation>严格</translation>
        </message>
        <message>
            <source>off: every update serves unmeasured</source>
            <translation>关闭:每次更新不经测量直接上线</translation>
        </message>
        <message>
            <source>Live only: no simulated user; traffic and verdicts come from clients and from you</source>
            <translation>只有真实流量:没有模拟用户,请求和判定来自客户端和您</translation>
        </message>
        <message>
            <source>At the end, train one deliberately bad candidate to see the gate reject it</source>
            <translation>最后训练一个故意做坏的候选,看闸门拒绝它</translation>
        </message>
        <message>
            <source>Recipe</source>
            <translation>方案</translation>
        </message>
        <message>
            <source>Name</source>
            <translation>名称</translation>
        </message>
        <message>
            <source>Seed</source>
            <translation>种子</translation>
        </message>
        <message>
            <source>Gate</source>
            <translation>闸门</translation>
        </message>
        <message>
            <source>Simulated requests</source>
            <translation>模拟请求数</translation>
        </message>
        <message>
            <source>Start</source>
            <translation>开始</translation>
        </message>
        <message>
            <source>No recipe was found.</source>
            <translation>没有找到方案。</translation>
        </message>
        <message>
            <source>Reading the recipes …</source>
            <translation>正在读取方案 …</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::SessionList</name>
        <message>
            <source>Follow the newest</source>
            <translation>跟随最新</translation>
        </message>
        <message>
            <source>Sessions</source>
            <translation>会话</translation>
        </message>
        <message>
            <source>Session</source>
            <translation>会话</translation>
        </message>
        <message>
            <source>Seed</source>
            <translation>种子</translation>
        </message>
        <message>
            <source>Phase</source>
            <translation>阶段</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>步数</translation>
        </message>
        <message>
            <source>Last reward</source>
            <translation>最近奖励</translation>
        </message>
        <message>
            <source>Started</source>
            <translation>开始时间</translation>
        </message>
        <message>
            <source>Draw whichever session was started last</source>
            <translation>总是画出最近启动的会话</translation>
        </message>
        <message>
            <source>Session %1, recipe %2%3</source>
            <translation>会话 %1,方案 %2%3</translation>
        </message>
        <message>
            <source>, live only</source>
            <translation>,仅实时</translation>
        </message>
        <message>
            <source>%1 (step %2)</source>
            <translation>%1(第 %2 步)</translation>
        </message>
        <message>
            <source>no step yet</source>
            <translation>还没有步</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::StartPage</name>
        <message>
            <source>Sluice</source>
            <translation>Sluice</translation>
        </message>
        <message>
            <source>Serve a model, learn from what people accept, and let an update into service only when it is proven better.</source>
            <translation>提供模型服务,从人们接受的回答中学习,更新只有被证明更好才上线。</translation>
        </message>
        <message>
            <source>Run the demo</source>
            <translation>运行演示</translation>
        </message>
        <message>
            <source>A simulated user asks the built-in model questions and accepts short answers. In a few minutes you see it learn, updates pass or fail the gate, and you can roll any of them back.</source>
            <translation>模拟用户向自带模型提问,接受简短的回答。几分钟内您会看到它学习,更新通过或过不了闸门,任何一个都可以回滚。</translation>
        </message>
        <message>
            <source>About five minutes. A simulated user wants short answers; watch the curve rise, move a threshold, roll back.</source>
            <translation>大约五分钟。模拟用户想要简短的回答;看曲线上升,移动一个阈值,回滚一次。</translation>
        </message>
        <message>
            <source>Resume the session</source>
            <translation>继续会话</translation>
        </message>
        <message>
            <source>Start a session …</source>
            <translation>新建会话…</translation>
        </message>
        <message>
            <source>Use a model of your own …</source>
            <translation>选用自己的模型…</translation>
        </message>
        <message>
            <source>Point a client at it</source>
            <translation>让客户端连接</translation>
        </message>
        <message>
            <source>Copy</source>
            <translation>复制</translation>
        </message>
        <message>
            <source>Copy the client snippet</source>
            <translation>复制客户端示例</translation>
        </message>
        <message>
            <source>Choose a port …</source>
            <translation>选择端口…</translation>
        </message>
        <message>
            <source>Recent workspaces</source>
            <translation>最近的工作区</translation>
        </message>
        <message>
            <source>Open another workspace …</source>
            <translation>打开别的工作区…</translation>
        </message>
        <message>
            <source>None yet: the demo makes the first one.</source>
            <translation>还没有:演示会创建第一个。</translation>
        </message>
        <message>
            <source>The server runs where a workspace is open.</source>
            <translation>服务器在打开了工作区的窗口里运行。</translation>
        </message>
        <message>
            <source>Opening the workspace …</source>
            <translation>正在打开工作区…</translation>
        </message>
        <message>
            <source>Model: %1 (%2, %3)</source>
            <translation>模型:%1(%2,%3)</translation>
        </message>
        <message>
            <source>No model is loaded: choose a file that fits.</source>
            <translation>没有加载模型:请选一个装得下的文件。</translation>
        </message>
        <message>
            <source>The model is still loading.</source>
            <translation>模型还在加载。</translation>
        </message>
        <message>
            <source>A session is open already: end it first.</source>
            <translation>已有一个会话:请先结束它。</translation>
        </message>
        <message>
            <source>Resume “%1”</source>
            <translation>继续“%1”</translation>
        </message>
        <message>
            <source>Listening on %1 (OpenAI routes; any OpenAI client works).</source>
            <translation>正在 %1 监听(OpenAI 路由;任何 OpenAI 客户端都可用)。</translation>
        </message>
        <message>
            <source>Listening on %1; requests are told to come again until the model is loaded.</source>
            <translation>正在 %1 监听;模型加载完之前,请求会被告知稍后再来。</translation>
        </message>
        <message>
            <source>The server starts with the model.</source>
            <translation>服务器随模型一起启动。</translation>
        </message>
        <message>
            <source>End it</source>
            <translation>结束它</translation>
        </message>
        <message>
            <source>Its answers, verdicts and versions are kept; what serves goes on serving.</source>
            <translation>它的回答、判定和版本都会保留;正在服务的版本继续服务。</translation>
        </message>
        <message>
            <source>“%1” can&apos;t go on: %2</source>
            <translation>“%1”无法继续:%2</translation>
        </message>
        <message>
            <source>Reading %1 …</source>
            <translation>正在读取 %1 …</translation>
        </message>
        <message>
            <source>Roll back to the base …</source>
            <translation>回滚到基础模型 …</translation>
        </message>
        <message>
            <source>%1 of an earlier run serves: a new run starts from it, and its curve where that one ended.</source>
            <translation>在线的是之前运行的 %1:新的运行从它开始,曲线接着上次结束的地方。</translation>
        </message>
        <message>
            <source>Try again</source>
            <translation>重试</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::TimelinePage</name>
        <message>
            <source>Version</source>
            <translation>版本</translation>
        </message>
        <message>
            <source>State</source>
            <translation>状态</translation>
        </message>
        <message>
            <source>Accepted: it / in service</source>
            <translation>接受:它 / 在服务</translation>
        </message>
        <message>
            <source>Decision</source>
            <translation>决定</translation>
        </message>
        <message>
            <source>When</source>
            <translation>时间</translation>
        </message>
        <message>
            <source>Adapter versions</source>
            <translation>适配器版本</translation>
        </message>
        <message>
            <source>Roll back to this version …</source>
            <translation>回滚到此版本…</translation>
        </message>
        <message>
            <source>Compare answers …</source>
            <translation>比较回答…</translation>
        </message>
        <message>
            <source>Export …</source>
            <translation>导出…</translation>
        </message>
        <message>
            <source>%1/%2 : %3/%4</source>
            <translation>%1/%2 : %3/%4</translation>
        </message>
        <message>
            <source>Choose a version first.</source>
            <translation>请先选一个版本。</translation>
        </message>
        <message>
            <source>This version serves already.</source>
            <translation>这个版本已经在服务。</translation>
        </message>
        <message>
            <source>%1 can&apos;t serve: its files were deleted.</source>
            <translation>%1 不能服务:它的文件已删除。</translation>
        </message>
        <message>
            <source>%1 was taken out: it can&apos;t be rolled back to.</source>
            <translation>%1 已撤下:不能回滚到它。</translation>
        </message>
        <message>
            <source>%1 never served: only versions that did can be rolled back to.</source>
            <translation>%1 从未服务过:只能回滚到服务过的版本。</translation>
        </message>
        <message>
            <source>Asks first; done within a second; can be undone (Ctrl+Shift+B)</source>
            <translation>先询问;一秒内完成;可以撤销(Ctrl+Shift+B)</translation>
        </message>
        <message>
            <source>Choose a version in the timeline or the table.</source>
            <translation>在时间线或表格中选一个版本。</translation>
        </message>
        <message>
            <source>State: %1</source>
            <translation>状态:%1</translation>
        </message>
        <message numerus="yes">
            <source>Parent: %1, %n step(s) along its line</source>
            <translation>
                <numerusform>父版本:%1,沿线 %n 步</numerusform>
            </translation>
        </message>
        <message>
            <source>Rank %1, %2</source>
            <translation>秩 %1,%2</translation>
        </message>
        <message>
            <source>Hash %1 …</source>
            <translation>哈希 %1…</translation>
        </message>
        <message>
            <source>Made %1</source>
            <translation>生成于 %1</translation>
        </message>
        <message>
            <source>Note: %1</source>
            <translation>备注:%1</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::VerdictCard</name>
        <message>
            <source>↶ Rolled back to</source>
            <translation>↶ 回滚到</translation>
        </message>
        <message>
            <source>‖ Serving frozen at</source>
            <translation>‖ 服务冻结于</translation>
        </message>
        <message>
            <source>▶ Serving unfrozen at</source>
            <translation>▶ 服务解冻于</translation>
        </message>
        <message>
            <source>▲ Promoted (forced)</source>
            <translation>▲ 上线(强制)</translation>
        </message>
        <message>
            <source>▲ Promoted</source>
            <translation>▲ 上线</translation>
        </message>
        <message>
            <source>✕ Rejected</source>
            <translation>✕ 拒绝</translation>
        </message>
        <message>
            <source>‖ Held</source>
            <translation>‖ 暂缓</translation>
        </message>
        <message>
            <source>%1 %2 · %3</source>
            <translation>%1 %2 · %3</translation>
        </message>
        <message>
            <source>Note: %1</source>
            <translation>备注:%1</translation>
        </message>
        <message>
            <source>%1 pairs · difference %2 to %3 points · settings %4</source>
            <translation>%1 对 · 差异 %2 到 %3 个百分点 · 设置 %4</translation>
        </message>
        <message>
            <source>Your reason</source>
            <translation>您的理由</translation>
        </message>
        <message>
            <source>Promote</source>
            <translation>上线</translation>
        </message>
        <message>
            <source>Reject</source>
            <translation>拒绝</translation>
        </message>
        <message>
            <source>A decision by hand carries your reason</source>
            <translation>人工决定要写明您的理由</translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LoosenSheet</name>
        <message>
            <source>Loosen the gate</source>
            <translation>放宽闸门</translation>
        </message>
        <message>
            <source>With this draft the gate lets through what it would stop now, from the next decision on and for the candidate that is being measured:</source>
            <translation>按此草稿,闸门会放行现在会拦下的候选;从下一次判定起生效,也适用于正在测量的候选:</translation>
        </message>
    </context>
</TS>
